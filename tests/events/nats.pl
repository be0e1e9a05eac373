#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
# nats.pl PORT [JSON] - publishes what lines on its standard input say, to a server of
# NATS on this machine. JSON: what it is told when it is connected to.
#
#   send SUBJECT HEX   a message
#
# Each line is answered by "ok" when the server has it.
use strict;
use warnings;
use IO::Socket::INET;

my $server = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]")
    or die "nats: $!";
$| = 1;

sub flush_out {
	print $server "PING\r\n";
	while (my $line = <$server>) {
		return if $line =~ /^PONG/;
		print $server "PONG\r\n" if $line =~ /^PING/;
		die $line if $line =~ /^-ERR/;
	}
	die "nats: it has gone\n";
}

print $server 'CONNECT ', $ARGV[1] // '{"verbose":false}', "\r\n";
flush_out();
while (my $line = <STDIN>) {
	my ($subject, $hex) = $line =~ /^send (\S+) ([0-9a-f]*)$/
	    or die "what is: $line";
	my $bytes = pack 'H*', $hex;
	print $server "PUB $subject ", length $bytes, "\r\n$bytes\r\n";
	flush_out();
	print "ok\n";
}
