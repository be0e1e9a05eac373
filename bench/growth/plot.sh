#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# plot.sh TABLES PLOTS [svg|png] - draws the curves of kvroute-bench --growth.
#
# TABLES is a folder of tables, one file for each curve (blocks.tsv, ...); each
# becomes a picture in PLOTS. Curves without a table are left out.
set -eu

tables=$1
plots=$2
kind=${3:-svg}

case $kind in
svg) terminal="svg size 560,340 font 'sans,11' background '#ffffff'" ;;
png) terminal="pngcairo size 560,340 font 'sans,9'" ;;
*) echo "usage: plot.sh TABLES PLOTS [svg|png]" >&2; exit 2 ;;
esac
mkdir -p "$plots"

# plot CURVE TITLE XLABEL < further gnuplot commands, in which T is the file.
plot()
{
	[ -f "$tables/$1.tsv" ] || return 0
	{
		cat <<-END
		set terminal $terminal
		set output '$plots/$1.$kind'
		T = '$tables/$1.tsv'
		set datafile separator tab
		set datafile missing '-'
		set title '$2'
		set xlabel '$3'
		set ylabel 'ns a call'
		set grid back linetype 1 linecolor '#dddddd' linewidth 0.5
		set key outside right center samplen 1.5 noenhanced
		set logscale xy
		set format x '%.0s%c'
		set format y '%.0s%c'
		set style data linespoints
		set linetype 1 linecolor '#0072b2' pointtype 7 pointsize 0.4
		set linetype 2 linecolor '#d55e00' pointtype 5 pointsize 0.4
		set linetype 3 linecolor '#009e73' pointtype 9 pointsize 0.5
		set linetype 4 linecolor '#cc79a7' pointtype 13 pointsize 0.5
		set linetype 5 linecolor '#e69f00' pointtype 11 pointsize 0.5
		set linetype 6 linecolor '#56b4e9' pointtype 6 pointsize 0.5
		set linetype 7 linecolor '#666666' pointtype 4 pointsize 0.5
		END
		cat
	} | gnuplot
	[ "$kind" != svg ] || sed -i \
	    '1a <!-- SPDX-License-Identifier: BSD-2-Clause -->' "$plots/$1.svg"
}

plot blocks 'Live blocks (prompts of 128)' 'live blocks' <<'END'
set yrange [10:2000]
plot T using 'size':'hash' title 'hash', \
    '' using 'size':'new' title 'observe, new', \
    '' using 'size':'new_p99' title '... p99', \
    '' using 'size':'again' title 'observe again', \
    '' using 'size':'match' title 'match', \
    '' using 'size':'match_p99' title '... p99', \
    '' using 'size':'expire' title 'expire'
END

plot workers 'Workers' 'workers' <<'END'
set logscale x 4
set format x '%.0f'
set yrange [10:50000]
plot T using 'size':'choose' title 'choose', \
    '' using 'size':'new' title 'observe, new', \
    '' using 'size':'again' title 'observe again', \
    '' using 'size':'match' title 'match', \
    '' using 'size':'expire' title 'expire', \
    '' using 'size':'reset' title 'reset a worker', \
    2 * x + 200 title '2 ns a worker + 200' linetype 7 dashtype 2
END

plot prompt 'Length of one prompt' 'tokens' <<'END'
set logscale x 4
set format x '%.0b%B'
set yrange [10:1000000]
plot T using 'tokens':'hash' title 'hash', \
    '' using 'tokens':'new' title 'observe, new', \
    '' using 'tokens':'split' title 'split in half', \
    '' using 'tokens':'grow' title 'a block longer', \
    '' using 'tokens':'part' title 'match, parting', \
    '' using 'tokens':'match' title 'match', \
    '' using 'tokens':'expire' title 'expire'
END

plot shared 'A prefix that many workers hold' 'holders' <<'END'
set logscale x 4
set format x '%.0f'
set yrange [10:1000000]
plot T using 'holders':'split' title 'split it', \
    '' using 'holders':'match' title 'match', \
    '' using 'holders':'extend' title 'go on from it', \
    '' using 'holders':'again' title 'observe again', \
    '' using 'holders':'join' title 'one more holder', \
    '' using 'holders':'expire' title 'expire'
END

plot chat 'A chat: match, choose of 64, record' 'turn' <<'END'
unset logscale
set format '%.0f'
set yrange [0:*]
set xrange [0:500]
plot T index 0 using 'turn':'decision' title 'one worker', \
    '' index 1 using 'turn':'decision' title 'two in turn', \
    '' index 2 using 'turn':'decision' title 'lease', \
    '' index 3 using 'turn':'decision' title 'and extend'
END

plot fan 'Prompts that part at one block' 'prompts' <<'END'
set xrange [1000:100000]
set yrange [10:2000]
plot T using 'size':'hash' title 'hash', \
    '' using 'size':'match' title 'match', \
    '' using 'size':'new' title 'observe, new', \
    '' using 'size':'new_p99' title '... p99', \
    '' using 'size':'again' title 'observe again', \
    '' using 'size':'expire' title 'expire'
END

plot stairs 'Prompts that end one block apart' 'prompts' <<'END'
set xtics (1000, 2000, 4000, 8000)
set format x '%.0f'
set xrange [1000:8000]
set yrange [10:3000000]
plot T index 3 using 'size':'match' title 'match, 64 workers', \
    '' index 5 using 'size':'again' title 'again, 64, random', \
    '' index 3 using 'size':'new' title 'new, 64, rising', \
    '' index 4 using 'size':'new' title 'new, 64, falling', \
    '' index 2 using 'size':'new' title 'new, 1, random', \
    '' index 0 using 'size':'new' title 'new, 1, rising', \
    '' index 2 using 'size':'match' title 'match, 1 worker'
END

plot parted 'A prefix of 1,024 workers, from which prompts part' 'prompts' <<'END'
set xrange [1:250]
set yrange [100:100000]
plot T using 'parted':'first' title 'route before', \
    '' using 'parted':'route' title 'route after', \
    '' using 'parted':'later' title 'route later', \
    '' using 'parted':'again' title 'observe again', \
    '' using 'parted':'part' title 'observe, parting'
END
