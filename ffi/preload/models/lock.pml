/* The lock around the heap (ffi/preload/src/lock.rs, and the emitted library's): threads that look, sleep
 * and are woken. A step of this model is one atomic operation on the lock's words, or one call of the
 * system.
 *
 * Checked: one thread at a time is inside, and nobody sleeps for ever, as SPIN reports every state in which
 * no thread can go on and one has not ended.
 *
 * BROKEN plants an error: 1 reads the count of wakes after the thread counts as a sleeper, 2 leaves the
 * sign that a sleeper is being woken, 3 wakes nobody after the last time. */
#ifndef THREADS
#define THREADS 3
#endif
#ifndef TIMES
#define TIMES 2
#endif
#ifndef BROKEN
#define BROKEN 0
#endif

bool held, waking;
byte sleepers, wakes, inside;
bool asleep[THREADS];

/* One call that wakes, at most one thread; any of those that sleep. */
inline wake_one() {
    atomic {
        if
        :: asleep[0] -> asleep[0] = false
        :: asleep[1] -> asleep[1] = false
#if THREADS > 2
        :: asleep[2] -> asleep[2] = false
#endif
#if THREADS > 3
        :: asleep[3] -> asleep[3] = false
#endif
        :: else -> skip
        fi
    }
}

active [THREADS] proctype thread() {
    byte times, seen;
    bool got, others;
    do
    :: times == TIMES -> break
    :: else ->
        times++;
look:
        if
        :: atomic { !held -> held = true; goto holding }
        :: skip /* looked in vain as often as it does */
        fi;
#if BROKEN != 1
        seen = wakes;
#endif
        if
        :: atomic { !held -> held = true; goto holding }
        :: atomic { held -> sleepers++ }
        fi;
#if BROKEN == 1
        seen = wakes;
#endif
        /* The system compares and puts to sleep in one step. */
        if
        :: atomic { wakes == seen -> asleep[_pid] = true };
            !asleep[_pid]
        :: atomic { wakes != seen -> skip }
        fi;
        atomic {
            sleepers--;
#if BROKEN != 2
            waking = false;
#endif
            got = !held;
            held = true
        };
        if
        :: !got -> goto look
        :: else
        fi;
holding:
        inside++;
        assert(inside == 1);
        inside--;
        atomic { held = false; others = sleepers > 0 || waking };
        if
        :: others ->
            atomic {
                if
                :: held || waking || sleepers == 0 -> others = false
#if BROKEN == 3
                :: times == TIMES -> others = false
#endif
                :: else -> waking = true
                fi
            };
            if
            :: others ->
                wakes++;
                wake_one()
            :: else
            fi
        :: else
        fi
    od
}
