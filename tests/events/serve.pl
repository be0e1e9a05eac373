#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause
# serve.pl FOLDER - an engine's HTTP server: what it answers is in files of the
# folder. FOLDER/port tells its port. FOLDER/kv_cache_events is told once, and
# FOLDER/server_info each time; without them the first is an empty array, and
# the other is not found.
use strict;
use warnings;
use IO::Socket::INET;

my $folder = shift;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16)
    or die "socket: $!";
open my $port, '>', "$folder/port.new" or die "port: $!";
print $port $server->sockport;
close $port;
rename "$folder/port.new", "$folder/port" or die "port: $!";

sub contents {
	my ($path) = @_;
	open my $in, '<', $path or return undef;
	local $/;
	return <$in>;
}

while (my $client = $server->accept) {
	my $request = <$client> // '';
	while (my $line = <$client>) {
		last if $line =~ /^\r?\n$/;
	}
	my $body;
	if ($request =~ m{^POST /kv_cache_events }) {
		$body = '[]';
		if (rename "$folder/kv_cache_events", "$folder/told") {
			$body = contents("$folder/told");
		}
	} elsif ($request =~ m{^GET /server_info }) {
		$body = contents("$folder/server_info");
	}
	my $status = defined $body ? '200 OK' : '404 Not Found';
	$body //= '';
	print $client "HTTP/1.1 $status\r\nContent-Length: ", length $body,
	    "\r\nConnection: close\r\n\r\n$body";
	close $client;
}
