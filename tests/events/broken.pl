#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
# broken.pl HOW FILE - an engine that takes requests and does not answer them as
# it should; its port is written to the file.
#
#   silent   closes the connection
#   cut      closes it in the middle of a response
#   rubbish  sends no HTTP
#   hold     never answers
#   typed    refuses bodies that are not application/json, as vLLM does
use strict;
use warnings;
use IO::Socket::INET;

my ($how, $file) = @ARGV;
my %says = (silent => '', rubbish => "tokens\r\n\r\n", hold => undef,
    typed => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
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
	my ($length, $type) = (0, '');
	while (my $line = <$client>) {
		$type = $1 if $line =~ /^content-type: *(\S+)/i;
		$length = $1 if $line =~ /^content-length: *(\d+)/i;
		last if $line =~ /^\r?\n$/;
	}
	read $client, (my $body), $length;
	if ($how eq 'typed' && $type eq 'application/json') {
		print $client "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
		close $client;
	} elsif (defined $says{$how}) {
		print $client $says{$how};
		close $client;
	} else {
		push @held, $client;
	}
}
