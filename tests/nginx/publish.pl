#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
# publish.pl - an engine that publishes in an awkward way: each path that a
# proxy asks is answered in its own. It prints its port, and ends after ten
# minutes.
#
#   /metrics          a million bytes that are none of vLLM's, in chunks
#   /server_info      headers, then the end of the connection
#   /get_server_info  JSON, a few bytes at a time, up to the end of it
use strict;
use warnings;
use IO::Socket::INET;

my $listener = IO::Socket::INET->new(Listen => 16, ReuseAddr => 1,
    LocalAddr => '127.0.0.1', LocalPort => 0) or die "listen: $!";
$| = 1;
$SIG{PIPE} = 'IGNORE';
alarm 600;
print $listener->sockport, "\n";

sub metrics
{
	my ($to) = @_;

	print $to "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	for my $i (1 .. 200) {
		my $lines = "sglang:bucket{le=\"$i\"} 1.0\n" x (1 + $i % 7 * 40);
		printf $to "%x\r\n%s\r\n", length $lines, $lines;
		$to->flush;
	}
	print $to "0\r\n\r\n";
}

sub info
{
	my ($to) = @_;
	my $text = "HTTP/1.1 200 OK\r\n\r\n" . '{"x":["' . 'y' x 100 .
	    '"],"max_total_num_tokens":654321,"page_size":4}';

	while (length $text) {
		print $to substr $text, 0, 7, '';
		$to->flush;
		select undef, undef, undef, 0.005;
	}
}

while (my $client = $listener->accept) {
	my $request = <$client> // '';

	while (defined(my $line = <$client>)) {
		last if $line eq "\r\n";
	}
	metrics($client) if $request =~ m{^GET /metrics };
	print $client "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"
	    if $request =~ m{^GET /server_info };
	info($client) if $request =~ m{^GET /get_server_info };
	close $client;
}
