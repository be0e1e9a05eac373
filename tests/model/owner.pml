/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owner.pml - the lock word of lib/region/lock.c and the seats of seat.c. Each
 * process has a seat. It may die at any step, also while it sleeps or is woken;
 * then another process has the seat, on its next turn. All that a process does
 * to the word is one compare-and-swap, so memory is sequentially consistent
 * here; what the lock's owner writes is the matter of lock.pml.
 *
 * Time passes only after a death: a sleeper then looks again whenever it likes.
 * If there was none, each sleeper must be woken in time, which `timeout` (no
 * process can do anything) would deny.
 *
 * WITHOUT removes a piece: each must lead to an error (mk/model.sh).
 */
mtype = { NOTHING, TURN, ALIVE, WAITERS_SET, WAITERS_KEPT, COMPARE, WAKE,
	LOOK };
#define has(piece) (WITHOUT != piece)
#define SEATS 3
#define WAITERS 32
#define HUNGRY 64
#define owner(w) ((w) % 32)
#define seat_of(w) (owner(w) % 4)
#define turn_of(w) (owner(w) / 4)
#define alive(w) (living[seat_of(w)] && turn[seat_of(w)] == turn_of(w))
#define waiters(w) ((w) % 64 >= WAITERS)
#define hungry(w) ((w) >= HUNGRY)
#define with(w, on, flag) ((w) + ((on) -> 0 : flag))

byte word, turn[4], inside, deaths;
bool living[4], asleep[4], died;

/* Steps; each may be death instead. */
inline die() {
	atomic { deaths > 0 -> deaths--; died = true; goto dead }
}
inline load() {
	if :: w = word :: die() fi
}
inline swap(from, to) {
	if
	:: atomic { word == from -> word = to; swapped = true }
	:: atomic { word != from -> swapped = false }
	:: die()
	fi
}
inline wake() {
	if
	:: atomic { asleep[1] -> asleep[1] = false }
	:: atomic { asleep[2] -> asleep[2] = false }
	:: atomic { asleep[3] -> asleep[3] = false }
	:: !asleep[1] && !asleep[2] && !asleep[3]
	:: die()
	fi
}
/* Takes the lock of an owner that is dead. */
inline look() {
	load();
	if
	:: owner(w) != 0 && owner(w) != me && (!alive(w) || !has(ALIVE)) ->
		swap(w, me + WAITERS)
	:: else
	:: die()
	fi
}
inline sleep() {
	if
	:: asleep[seat] = (word == v || !has(COMPARE))
	:: die()
	fi;
	slept = true;
	if
	:: !asleep[seat]
	:: atomic { died && has(LOOK) && asleep[seat] -> asleep[seat] = false };
		look()
	:: !died && timeout -> assert(false)
	:: die()
	fi
}
/* Newcomers leave a free lock to the hungry. */
inline round() {
	load();
	if
	:: owner(w) == 0 && (slept || !hungry(w)) ->
		v = me + (has(WAITERS_KEPT) -> WAITERS : 0);
		v = v + (slept && keeps && hungry(w) -> HUNGRY : 0);
		swap(w, v)
	:: else ->
		v = with(w, waiters(w) || !has(WAITERS_SET), WAITERS);
		v = with(v, hungry(w) || !slept || keeps, HUNGRY);
		swap(w, v);
		if
		:: swapped -> swapped = false; sleep()
		:: else
		fi
	fi
}
proctype handle(byte seat; byte lives) {
	byte me, w, v, rounds;
	bool swapped, slept, keeps, in;
born:	atomic {
		me = seat + 4 * turn[seat]; living[seat] = true; rounds = 0;
		/* woken in vain less often than PATIENCE, or more often */
		if :: keeps = false :: keeps = true fi
	}
	do
	:: rounds == ROUNDS -> break
	:: rounds < ROUNDS -> rounds++;
		swap(0, me);
		do
		:: swapped -> break
		:: !swapped -> round()
		od;
		atomic { slept = false; inside++; in = true; assert(inside == 1) }
		if :: skip :: die() fi;
		atomic { inside--; in = false }
		swap(me, 0);
		do
		:: swapped -> break
		:: !swapped -> load(); assert(owner(w) == me);
			swap(w, (hungry(w) -> HUNGRY : 0));
			if
			:: swapped && waiters(w) && has(WAKE) -> wake()
			:: else
			fi
		od;
		swapped = false
	od;
dead:	atomic {
		inside = inside - in; in = false; swapped = false;
		slept = false; w = 0; v = 0;
		living[seat] = false; asleep[seat] = false;
		turn[seat] = turn[seat] + has(TURN);
		if
		:: lives > 1 -> lives--; goto born
		:: else
		fi
	}
}
init {
	atomic {
		if :: deaths = 0 :: deaths = DEATHS fi;
		run handle(1, LIVES); run handle(2, 1); run handle(3, 1)
	}
}
