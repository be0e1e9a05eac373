#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
#
# cut.pl FILE - an engine that responds with FILE, an event stream, cut where
# the path of the request says:
#   ?piece=N   N bytes, a little later the rest
#   ?end=N     N bytes, and the response ends
#   ?broken=N  N bytes of a chunked body that should be longer
# It prints its port. It ends with its parent, or after ten minutes.
#
# cut.pl --compare STEP FOLDER SENT EXPECTED - compares what clients got:
# EXPECTED, or after an incomplete response a prefix of it with every complete
# event.
use strict;
use warnings;
use IO::Socket::INET;
use Socket qw(TCP_NODELAY IPPROTO_TCP);

sub slurp
{
	my ($path) = @_;
	open(my $in, '<:raw', $path) or return undef;
	local $/;
	return scalar <$in> // '';
}

sub compare
{
	my ($step, $folder, $sent, $expected) = @_;
	my ($all, $want) = (slurp($sent), slurp($expected));
	my $problems = 0;
	for my $how (qw(piece end broken)) {
		for (my $n = 0; $n <= length $all; $n += $step) {
			my $got = slurp("$folder/$how$n") // '';
			my $problem = judge($how, $n, $got, $all, $want);
			next unless $problem;
			print "$how=$n: $problem\n";
			return if ++$problems > 5;
		}
	}
}

# The client must have all complete events: up to the last empty line in the
# first n bytes. It must not have stripped events, unless they are incomplete
# and therefore unknown.
sub judge
{
	my ($how, $n, $got, $all, $want) = @_;
	if ($how eq 'piece') {
		return $got eq $want ? '' : 'not what it should be: ' . $got;
	}
	my $whole = substr($all, 0, $n);
	$whole =~ s/(\A|\n\n)((?!\n\n).)*\z/$1/s;
	my $kept = $whole;
	$kept =~ s/^data: \{"choices":\[\],"usage".*\n\n//m
	    if $want ne $all;
	my $rest = substr($all, length $whole, $n - length $whole);
	return 'not a beginning: ' . $got
	    if substr($kept . $rest, 0, length $got) ne $got;
	return 'less than came whole: ' . $got
	    if $how eq 'end' && length $got < length $kept;
	return '';
}

sub answer
{
	my ($client, $stream) = @_;
	my $head = '';
	while (defined(my $line = <$client>)) {
		$head .= $line;
		last if $line =~ /^\r?\n/;
	}
	return unless $head =~ /\?(\w+)=(\d+)/;
	my ($how, $n) = ($1, $2);
	read($client, my $body, $1) if $head =~ /^Content-Length: (\d+)/mi;
	my $first = substr($stream, 0, $n);
	print $client "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n",
	    "Connection: close\r\n";
	if ($how eq 'broken') {
		printf $client "Transfer-Encoding: chunked\r\n\r\n%x\r\n",
		    length($stream) + 1;
		print $client $first;
	} elsif ($how eq 'piece') {
		print $client "\r\n", $first;
		$client->flush;
		select(undef, undef, undef, 0.002);
		print $client substr($stream, $n);
	} else {
		print $client "\r\n", $first;
	}
}

if (@ARGV && $ARGV[0] eq '--compare') {
	shift;
	compare(@ARGV);
	exit 0;
}
$SIG{PIPE} = 'IGNORE';
alarm 600;
my $stream = slurp($ARGV[0]) // die "$ARGV[0]: $!\n";
my $listener = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1',
    LocalPort => 0) or die "no port: $!\n";
$| = 1;
print $listener->sockport, "\n";
while (my $client = $listener->accept) {
	setsockopt($client, IPPROTO_TCP, TCP_NODELAY, 1);
	binmode $client;
	answer($client, $stream);
	close $client;
}
