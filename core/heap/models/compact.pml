/*
 * The size-class automaton of compact-fit, with incremental moves, for several processes.
 *
 * One size class with pages of PI page-blocks and the partial compaction bound KAPPA (Kirsch and
 * Sokolova's slides: "Incremental Size-Class Automaton for pi > 1"). As in the slides, and as
 * under the class lock of core/heap/src/compact, a transition is atomic; between the
 * increments of a move other processes make theirs. A page-block has two words, an increment
 * carries one: so a move has an initial step, two increments, of which the last ends it.
 *
 * Each process owns the blocks that it allocates; it writes, reads and frees them through their
 * handles. A free that begins a move makes its increments, until the move has ended, or somebody
 * else has taken it back or ended it by freeing its block. Contents are versions: a word that
 * was written last in version v must be read as v; as all blocks are alike, only those of handle 0
 * are written twice. Which page of a list comes first is left open.
 *
 * Verified after every transition and every increment:
 *   n <= KAPPA; every used page-block has exactly one owner, a handle or a move that leads to it;
 *   pages <= h/PI + KAPPA + pages in which nothing but sources is left;
 *   no read sees another version than was written last (no lost update).
 * Verified over all executions: no process waits for ever (no invalid end state), and with weak
 * fairness every move ends unless it is led elsewhere for ever (`ltl ends`).
 *
 * BROKEN=1 does not mirror writes to what was carried, BROKEN=2 compacts one page too late,
 * BROKEN=3 leaves page-blocks to which a move leads, BROKEN=4 takes back any move (PI > 2),
 * BROKEN=5 begins a move anew at every write (ltl): the checker must find each of them.
 */
#ifndef PI
#define PI 2
#endif
#ifndef KAPPA
#define KAPPA 1
#endif
#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef BLOCKS
#define BLOCKS 3 /* blocks that a process may own */
#endif
#ifndef BROKEN
#define BROKEN 0
#endif

#define PAGES 6 /* the bound on pages says that they suffice */
#define PLACES (PAGES * PI)
#define HANDLES (PROCESSES * BLOCKS)
#define NONE 255
#define page(place) ((place) / PI)

/* What a page-block is. A target is used. */
#define FREE 0
#define USED 1
#define SOURCE 2
byte kind[PLACES];
/* The words of a page-block: the version that was written last. */
bit low[PLACES];
bit high[PLACES];

byte used[PAGES];
byte sources[PAGES];
byte at[HANDLES];     /* place of a handle's block */
bit version[HANDLES]; /* what its owner wrote last */

/* The move that a process makes. */
byte from[PROCESSES];
byte to[PROCESSES];
bit done[PROCESSES];  /* words carried */
bool led;             /* the move of process 1 was led elsewhere, and has not gone on since */

byte n; /* not-full pages */
bool begun;

#define not_full(p) (used[p] > 0 && used[p] < PI)
#define open(p) (used[p] > 0 && used[p] + sources[p] < PI)
/* A page that may give up a block: one with room, if there is one. */
#define departing(p) (not_full(p) && (open(p) || !any_open))
#define recallable(q) (from[q] != NONE && (n == 0 || not_full(page(from[q])) || BROKEN == 4))

/* What only one transition uses; 0 between transitions. */
byte p, q, b, h, place, other, found, sum, pages, bare, owners, leading, leaving;
byte chosen;
bool any_open;

inline count(x) { if :: not_full(x) -> n++ :: else fi }
inline uncount(x) { if :: not_full(x) -> n-- :: else fi }

/* One of the pages of which it holds, whichever; NONE without. */
#define PICK(condition) \
	if \
	:: condition(0) -> chosen = 0 \
	:: condition(1) -> chosen = 1 \
	:: condition(2) -> chosen = 2 \
	:: condition(3) -> chosen = 3 \
	:: condition(4) -> chosen = 4 \
	:: condition(5) -> chosen = 5 \
	:: else -> chosen = NONE \
	fi

/* The process whose move is from, or leads to, a place; NONE without. */
#define FIND_MOVE(array, wanted) \
	other = NONE; \
	for (q : 0 .. PROCESSES - 1) { \
		if :: array[q] == wanted -> other = q :: else fi \
	}

inline find_open() {
	any_open = false;
	for (p : 0 .. PAGES - 1) {
		if :: open(p) -> any_open = true :: else fi
	}
}

/* The first page-block of a kind in a page. */
inline find_block(x, wanted) {
	b = x * PI;
	do
	:: kind[b] != wanted -> b++
	:: else -> break
	od
}

inline forget(x) { from[x] = NONE; to[x] = NONE; done[x] = 0 }

inline clear(x) { kind[x] = FREE; low[x] = 0; high[x] = 0 }

/* A move is over: its source is free. */
inline arrive(x) {
	uncount(page(x));
	clear(x);
	sources[page(x)]--;
	count(page(x))
}

inline reset() {
	p = 0; q = 0; b = 0; h = 0; place = 0; other = 0; found = 0; sum = 0; pages = 0; bare = 0;
	owners = 0; leading = 0; leaving = 0; chosen = 0; any_open = false
}

/* The state as a whole: n, the bound on pages, the owner of every page-block. */
inline verify() {
	found = 0; sum = 0; pages = 0; bare = 0;
	for (p : 0 .. PAGES - 1) {
		if :: not_full(p) -> found++ :: else fi;
		sum = sum + used[p];
		if :: used[p] + sources[p] > 0 -> pages++ :: else fi;
		if :: used[p] == 0 && sources[p] > 0 -> bare++ :: else fi
	}
	assert(found == n);
	assert(n <= KAPPA);
	assert(pages <= sum / PI + KAPPA + bare);
	for (b : 0 .. PLACES - 1) {
		owners = 0; leading = 0; leaving = 0;
		for (h : 0 .. HANDLES - 1) { if :: at[h] == b -> owners++ :: else fi }
		for (q : 0 .. PROCESSES - 1) {
			if :: to[q] == b -> leading++ :: else fi;
			if :: from[q] == b -> leaving++ :: else fi
		}
		if
		:: kind[b] == FREE -> assert(owners + leading + leaving == 0)
		:: kind[b] == USED -> assert(owners + leading == 1 && leaving == 0)
		:: kind[b] == SOURCE -> assert(owners == 1 && leading == 0 && leaving == 1)
		fi
	}
	reset()
}

/* Fills, Completes; Recalls; Opens. */
inline allocate(handle) {
	PICK(open);
	d_step {
		other = NONE;
		if
		:: chosen == NONE ->
			for (q : 0 .. PROCESSES - 1) { if :: recallable(q) -> other = q :: else fi }
		:: else
		fi;
		if
		:: chosen != NONE ->
			find_block(chosen, FREE);
			place = b;
			uncount(chosen); used[chosen]++; count(chosen)
		:: other != NONE ->
			place = to[other];
			b = from[other];
			uncount(page(b));
			kind[b] = USED; sources[page(b)]--; used[page(b)]++;
			count(page(b));
			forget(other)
		:: else ->
			p = 0;
			do
			:: used[p] + sources[p] > 0 -> p++; assert(p < PAGES)
			:: else -> break
			od;
			place = p * PI;
			used[p] = 1;
			count(p)
		fi;
		kind[place] = USED;
		at[handle] = place;
		low[place] = version[handle]; high[place] = version[handle];
		verify()
	}
}

/* Drains, Empties, Reopens; Compacts, and then a move begins, or one under way is led elsewhere. */
inline free(handle, self) {
	d_step {
		FIND_MOVE(from, at[handle]);
		if
		:: other != NONE ->
			/* It is being moved: its source is free, its target remains to be freed. */
			place = to[other];
			forget(other);
			arrive(at[handle]);
			at[handle] = place
		:: else
		fi;
		find_open();
		begun = used[page(at[handle])] == PI && n >= KAPPA + (BROKEN == 2)
	}
	if
	:: begun -> PICK(departing)
	:: else -> chosen = NONE
	fi;
	d_step {
		place = at[handle];
		at[handle] = NONE; version[handle] = 0;
		if
		:: chosen != NONE ->
			find_block(chosen, USED);
			low[place] = 0; high[place] = 0;
			uncount(chosen);
			used[chosen]--; sources[chosen]++;
			count(chosen);
			kind[b] = SOURCE;
			FIND_MOVE(to, b);
			if
			:: other != NONE && BROKEN != 3 ->
				to[other] = place; done[other] = 0;
				led = led || other == 1;
				arrive(b)
			:: else -> from[self] = b; to[self] = place
			fi
		:: else ->
			uncount(page(place));
			used[page(place)]--;
			clear(place);
			count(page(place))
		fi;
		begun = false;
		verify()
	}
}

/* One increment; the last ends the move. */
inline step(self) {
	d_step {
		if :: self == 1 -> led = false :: else fi;
		if
		:: done[self] == 0 -> low[to[self]] = low[from[self]]; done[self] = 1
		:: else ->
			high[to[self]] = high[from[self]];
			for (h : 0 .. HANDLES - 1) { if :: at[h] == from[self] -> at[h] = to[self] :: else fi }
			place = from[self];
			forget(self);
			arrive(place)
		fi;
		verify()
	}
}

inline write(handle) {
	d_step {
		version[handle] = 1 - version[handle];
		low[at[handle]] = version[handle]; high[at[handle]] = version[handle];
		FIND_MOVE(from, at[handle]);
		if
		:: other != NONE && done[other] == 1 && BROKEN != 1 && BROKEN != 5 -> low[to[other]] = version[handle]
		:: other != NONE && BROKEN == 5 -> done[other] = 0
		:: else
		fi;
		reset()
	}
}

proctype thread(byte self) {
	byte mine;
	end: do
	:: from[self] != NONE -> atomic { if :: from[self] != NONE -> step(self) :: else fi }
	:: from[self] == NONE -> atomic {
		mine = self * BLOCKS;
		do
		:: mine + 1 < (self + 1) * BLOCKS -> mine++
		:: break
		od;
		if
		:: at[mine] == NONE -> allocate(mine)
		:: at[mine] != NONE && mine == 0 -> write(mine)
		:: at[mine] != NONE && from[self] == NONE -> free(mine, self)
		:: at[mine] != NONE ->
			assert(low[at[mine]] == version[mine] && high[at[mine]] == version[mine])
		fi;
		mine = 0
	}
	od
}

init {
	d_step {
		for (h : 0 .. HANDLES - 1) { at[h] = NONE }
		for (q : 0 .. PROCESSES - 1) { from[q] = NONE; to[q] = NONE };
		reset()
	}
	atomic {
		byte number = 0;
		do
		:: number < PROCESSES -> run thread(number); number++
		:: else -> break
		od;
		number = 0
	}
}

#ifdef LTL
ltl ends { [] (from[1] != NONE -> <> (from[1] == NONE || led)) }
#endif
