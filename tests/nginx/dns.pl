#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
# dns.pl FILE - a name server on a free port of 127.0.0.1, which it prints. It
# answers what the file says at that moment, one record a line:
#
#   NAME A 127.0.0.2
#   NAME AAAA ::1
#   _http._tcp.NAME SRV PRIORITY WEIGHT PORT TARGET
#
# A name without a line does not exist; with "NAME FAIL" the server fails, and
# prints that.
use strict;
use warnings;
use IO::Socket::INET;
use Socket qw(inet_pton AF_INET AF_INET6);

my %types = (A => 1, AAAA => 28, SRV => 33);
my $socket = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1',
    LocalPort => 0) or die "dns.pl: $!\n";

sub labels
{
	return join('', map { pack('C/a', $_) } split(/\./, $_[0])) . "\0";
}

sub data
{
	my ($type, @rest) = @_;

	return inet_pton(AF_INET, $rest[0]) if $type eq 'A';
	return inet_pton(AF_INET6, $rest[0]) if $type eq 'AAAA';
	return pack('nnn', @rest[0 .. 2]) . labels($rest[3]);
}

# Of all lines of a name: the answers of this type, and whether it exists.
sub look
{
	my ($wanted, $code) = @_;
	my (@answers, $known);

	open(my $file, '<', $ARGV[0]) or return (2);
	while (<$file>) {
		my ($name, $type, @rest) = split;

		next if !defined($type) || lc($name) ne lc($wanted);
		return (2) if $type eq 'FAIL';
		$known = 1;
		push(@answers, data($type, @rest)) if $types{$type} == $code;
	}
	close($file);
	return ($known ? 0 : 3, @answers);
}

$| = 1;
print $socket->sockport, "\n";
while (defined(my $from = $socket->recv(my $query, 4096))) {
	my ($id, $flags, $questions) = unpack('nnn', $query);
	my $at = 12;
	my @labels;

	while (my $n = ord(substr($query, $at, 1))) {
		push(@labels, substr($query, $at + 1, $n));
		$at += $n + 1;
	}
	my $code = unpack('n', substr($query, $at + 1, 2));
	my ($state, @answers) = look(join('.', @labels), $code);
	print "failed\n" if $state == 2;

	$socket->send(pack('nnnnnn', $id, 0x8180 | $state, 1,
	    scalar(@answers), 0, 0) . substr($query, 12, $at - 7) . join('',
	    map { pack('nnnNn/a', 0xc00c, $code, 1, 1, $_) } @answers));
}
