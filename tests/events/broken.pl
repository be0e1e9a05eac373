#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
# broken.pl HOW FILE - an engine that takes requests and does not answer them as
# it should; its port is written to the file.
#
#   silent   closes the connection
#   cut      closes it in the middle of a response
#   rubbish  sends no HTTP
#   hold     never answers
use strict;
use warnings;
use IO::Socket::INET;

my ($how, $file) = @ARGV;
my %says = (silent => '', rubbish => "tokens\r\n\r\n", hold => undef,
    cut => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"usage\":");
die "$how?" if !exists $says{$how};
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16)
    or die "socket: $!";
open my $port, '>', "$file.new" or die "port: $!";
print $port $server->sockport, "\n";
close $port;
rename "$file.new", $file or die "port: $!";

my @held;
while (my $client = $server->accept) {
	my $length = 0;
	while (my $line = <$client>) {
		$length = $1 if $line =~ /^content-length: *(\d+)/i;
		last if $line =~ /^\r?\n$/;
	}
	read $client, (my $body), $length;
	if (defined $says{$how}) {
		print $client $says{$how};
		close $client;
	} else {
		push @held, $client;
	}
}
