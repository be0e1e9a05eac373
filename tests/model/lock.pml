/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock.pml - the protocol of lib/api/txn.c under a lock (owner.pml). The index
 * is a list of cells. A writer pushes a cell, or removes the first one, which
 * at once becomes a cell of another kind; its second word then only looks like
 * a link. A writer may die after any step, also while it recovers what a dead
 * one left.
 *
 * MEMORY is C11's, not sequentially consistent. There is one writer at a time,
 * so all stores have one order: the log. A load may return any log entry of its
 * place except those older than one the reader is known to have been shown,
 * `base`: loads happen in any order between acquire and fence, stores become
 * visible in any order. What orders them is what a store carries: the log up to
 * the last release fence of its writer, or up to itself if it is a release. An
 * acquire load takes over what its log entry carries, an acquire fence what the
 * loads before it carried. The model does not rely on one place being read in
 * order. The lock shows all of the log to its owner, also when taken over from
 * a dead one.
 *
 * WITHOUT removes a piece: each must lead to an error (mk/model.sh).
 */
mtype = { NOTHING, ODD, FENCE, RELEASE, ACQUIRE, EVEN_LOOK, LATE_FENCE,
	SECOND_LOOK, VERSION_OF_REUSE, HEIRS, HEIRS_FENCE, EMPTYING, BOUND,
	NODE, LEASE /* kinds of cells */ };
#define has(piece) (WITHOUT != piece)
#define VERSION 0  /* places */
#define HEAD 1
#define KIND(c) (2 * (c))
#define NEXT(c) (2 * (c) + 1)
#define TRIES 2    /* then a reader takes the lock */
#define FIRST 6    /* log entries before anything happens: one per place */
#define newest(l) val[last[l]]
#define odd(x) ((x) % 2 == 1)
#define max(a, b) ((a) > (b) -> (a) : (b))
#define released (entries - (has(RELEASE) -> 0 : entries - fence))

byte place[40], val[40], carries[40], last[FIRST], entries, deaths = 2;
bool held, gone, listed[3]; /* the lock; its owner has died */

inline store(where, what, carry) {
	val[entries] = what; carries[entries] = carry;
	place[entries] = where; last[where] = entries; entries++
}
inline put(l, x, t) {
	if
	:: d_step { true; store(l, x, t) }
	:: atomic { deaths > 0 -> deaths--; gone = true; goto out }
	fi
}
inline lock() {
	atomic {
		!held || (gone && has(HEIRS)) ->
		heir = gone && odd(newest(VERSION)); held = true; gone = false;
		fence = (heir && has(HEIRS_FENCE) -> entries - 1 : fence)
	}
	if
	:: heir -> put(HEAD, (has(EMPTYING) -> 0 : newest(HEAD)), fence);
		listed[1] = false; listed[2] = false;
		put(VERSION, newest(VERSION) + 1, entries);
		assert(newest(HEAD) == 0); heir = false
	:: else
	fi;
	assert(!odd(newest(VERSION)))
}
inline push(c) {
	put(KIND(c), NODE, fence);
	put(NEXT(c), newest(HEAD), fence);
	put(HEAD, c, fence); listed[c] = true
}
inline reuse(c) {
	put(HEAD, newest(NEXT(c)), fence); listed[c] = false;
	put(KIND(c), LEASE, fence);
	put(NEXT(c), c, fence)
}
proctype writer(byte left) {
	byte fence = FIRST - 1, cell, turns;
	bool heir;
	do
	:: left == 0 -> break
	:: left > 0 && held && !gone -> left-- /* KVR_NOWAIT: dropped */
	:: left > 0 -> left--; lock(); cell = newest(HEAD);
		turns = (has(VERSION_OF_REUSE) || cell == 0 -> 1 : 0);
		if
		:: has(ODD) -> put(VERSION, newest(VERSION) + turns, fence)
		:: !has(ODD) -> turns = 2 * turns
		fi;
		fence = (has(FENCE) -> entries - 1 : fence);
		if
		:: !listed[1] -> push(1)
		:: !listed[2] -> push(2)
		:: cell > 0 -> reuse(cell)
		fi;
		put(VERSION, newest(VERSION) + turns, released);
		atomic { cell = 0; turns = 0; held = false }
	od;
out:	skip
}
inline load(l) {
	i = entries - 1;
	do :: place[i] != l || i > base -> i-- :: place[i] == l -> break od;
	carried = max(carried, carries[i])
}
inline look(p) {   /* a word of the index: does it belong to version v? */
	atomic {
		load(p); x = v;
		do :: place[x] != p -> x-- :: place[x] == p -> break od;
		whole = whole && i == x; x = val[i]; i = 0
	}
}
inline walk() {
	atomic { whole = true; nodes = true; steps = 0; look(HEAD); at = x }
	do
	:: at == 0 -> break
	:: at > 0 && steps == 2 -> nodes = false; break
	:: at > 0 && steps < 2 -> steps++;
		atomic { look(KIND(at)); nodes = nodes && x == NODE; x = 0 }
		atomic { look(NEXT(at)); at = x; x = 0 }
	od
}
proctype reader() {
	byte base = FIRST - 1, fence, carried, v, i, x, at, steps, tries;
	bool heir, whole, nodes;
	do
	:: tries == TRIES -> break
	:: atomic { tries < TRIES -> tries = tries + has(BOUND);
		carried = 0; load(VERSION); v = i;
		base = (has(ACQUIRE) -> max(base, carried) : base) }
		if
		:: has(EVEN_LOOK) && odd(val[v]) -> skip
		:: else -> walk();
			base = (has(LATE_FENCE) -> max(base, carried) : base);
			load(VERSION);
			if
			:: val[i] == val[v] || !has(SECOND_LOOK) -> goto end
			:: else
			fi
		fi
	od;
	lock(); base = entries - 1; v = last[VERSION]; walk(); held = false;
end:	assert(whole && nodes);
out:	skip
}
init {
	atomic {
		store(KIND(1), NODE, 0); store(NEXT(1), 0, 0);
		store(KIND(2), LEASE, 0); store(NEXT(2), 2, 0);
		store(HEAD, 1, 0); store(VERSION, 0, 0); listed[1] = true;
		run writer(1); run reader();
		if :: READERS > 1 -> run reader() :: else -> run writer(2) fi
	}
}
