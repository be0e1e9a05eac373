#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
#
# record.pl FOLDER STATUS ... - engines that record requests. For each STATUS
# there is one that responds with it, 200 as an event stream with usage at its
# end. The bodies of requests are in FOLDER as 1, 2, ... in order of arrival,
# each after a line with the status of its response; their heads in .head1, ...
# It prints a port for each engine. It ends with its parent, or after ten minutes.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;

my $stream = join '', map { "data: $_\n\n" }
    '{"choices":[{"index":0,"delta":{"content":"one"}}]}',
    '{"choices":[],"usage":{"prompt_tokens":40,"prompt_tokens_details":'
    . '{"cached_tokens":16},"completion_tokens":1}}', '[DONE]';

sub body_of
{
	my ($client) = @_;
	my ($length, $body, $head) = (0, '', '');
	while (defined(my $line = <$client>)) {
		$head .= $line;
		$length = $1 if $line =~ /^Content-Length: (\d+)/i;
		last if $line =~ /^\r?\n/;
	}
	read($client, $body, $length);
	return ($head, $body);
}

$SIG{PIPE} = 'IGNORE';
alarm 600;
my $folder = shift @ARGV;
my $select = IO::Select->new;
my %status;
$| = 1;
for my $status (@ARGV) {
	my $listener = IO::Socket::INET->new(Listen => 64,
	    LocalAddr => '127.0.0.1', LocalPort => 0) or die "no port: $!\n";
	$status{$listener->sockport} = $status;
	$select->add($listener);
	print $listener->sockport, "\n";
}
my $parent = getppid;
my $n = 0;
while (getppid == $parent) {
	for my $listener ($select->can_read(1)) {
		my $client = $listener->accept or next;
		my $status = $status{$listener->sockport};
		my ($head, $body) = body_of($client);
		$n++;
		open(my $to, '>:raw', "$folder/.head$n") or die;
		print $to $head;
		close $to;
		open(my $out, '>:raw', "$folder/.$n") or die "$folder: $!\n";
		print $out "$status\n$body";
		close $out;
		rename "$folder/.$n", "$folder/$n";
		print $client "HTTP/1.1 $status So\r\nConnection: close\r\n",
		    "Content-Type: text/event-stream\r\n\r\n",
		    $status == 200 ? $stream : '';
		close $client;
	}
}
