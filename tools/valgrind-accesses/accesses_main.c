/* accesses: a Valgrind tool that counts the reads and writes of each heap block.
 *
 * The second opinion on Metes' access counter: another instrumentation, another
 * allocator, other code. It writes one line for each end of a block's life, each
 * resize, and each block that is never freed: the size that it had, words read,
 * words written, bytes read, bytes written. On request also a touch trace: requests,
 * and the first access to each slice of 4096 bytes of each block.
 *
 * Words: further bytes of the word that a block moved last, each once, belong
 * to the same transfer; reads and writes apart.
 *
 * Copyright (C) 2026 the authors of Metes.
 *
 * This program is free software; you can redistribute it and/or modify it under
 * the terms of the GNU General Public License as published by the Free Software
 * Foundation; either version 2 of the License, or (at your option) any later
 * version. It is distributed in the hope that it will be useful, but WITHOUT ANY
 * WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR
 * A PARTICULAR PURPOSE. See the GNU General Public License for more details.
 *
 * It is under that licence because it is linked with Valgrind's core; it is a
 * program by itself, and no part of Metes is linked with it.
 */
#include "pub_tool_basics.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_replacemalloc.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"

static const HChar *rows_file = NULL;
static Int word = 4;
static VgFile *rows;
static const HChar *touches_file = NULL;
static VgFile *touches;
static ULong serials;

enum { SLICE = 4096 };

typedef struct {
    Addr start;
    SizeT size;
    ULong words[2], bytes[2];
    /* The word under way, and the bytes of it that were moved; 0 if none is. */
    Addr at[2];
    UInt moved[2];
    /* For the touch trace: its number, and for each slice whether it was touched. */
    ULong serial;
    UChar *touched;
} Block;

/* ---- which block lies at an address: granules of 16 bytes, three stages ---- */

enum { LEAF = 1 << 16, MIDDLE = 1 << 14, TOP = 1 << 13 };
static Block ***map[TOP];

static Block **granule(Addr address, Bool make) {
    UWord number = address >> 4;
    UWord top = number >> 30, middle = (number >> 16) & (MIDDLE - 1);
    if (top >= TOP) return NULL;
    if (!map[top]) {
        if (!make) return NULL;
        map[top] = VG_(calloc)("accesses.middle", MIDDLE, sizeof(Block **));
    }
    if (!map[top][middle]) {
        if (!make) return NULL;
        map[top][middle] = VG_(calloc)("accesses.leaf", LEAF, sizeof(Block *));
    }
    return &map[top][middle][number & (LEAF - 1)];
}

static Block *block_at(Addr address) {
    Block **place = granule(address, False);
    return place ? *place : NULL;
}

/* Blocks begin at 16 and have red zones of 16 between them: none shares a
 * granule with another. */
static void put(Block *block, Block *value) {
    for (Addr a = block->start; a < block->start + block->size; a += 16)
        *granule(a, True) = value;
}

/* ---- counting ---- */

static void move(Block *block, Addr from, Addr to, Int way) {
    block->bytes[way] += to - from;
    for (Addr a = from; a < to;) {
        Addr number = a / word, stop = (number + 1) * word;
        UInt bits = 0;
        if (stop > to) stop = to;
        for (; a < stop; a++) bits |= 1u << (a % word);
        if (block->moved[way] && block->at[way] == number && !(block->moved[way] & bits)) {
            block->moved[way] |= bits;
        } else {
            block->words[way]++;
            block->at[way] = number;
            block->moved[way] = bits;
        }
        if (block->moved[way] == (1u << word) - 1) block->moved[way] = 0;
    }
}

static void touch(Block *block, SizeT from, SizeT to, Bool write) {
    if (!touches) return;
    for (SizeT at = from; at < to; at = (at / SLICE + 1) * SLICE) {
        if (block->touched[at / SLICE]) continue;
        block->touched[at / SLICE] = 1;
        VG_(fprintf)(touches, "%c,%llu,%lu\n", write ? 'w' : 'r', block->serial, at);
    }
}

static VG_REGPARM(2) void on_access(Addr address, UWord what) {
    SizeT bytes = what >> 1;
    Addr end = address + bytes;
    Block *last = NULL;
    for (Addr a = address & ~(Addr)15; a < end; a += 16) {
        Block *block = block_at(a);
        if (!block || block == last) continue;
        last = block;
        Addr from = address > block->start ? address : block->start;
        Addr to = end < block->start + block->size ? end : block->start + block->size;
        if (from >= to) continue;
        move(block, from, to, what & 1);
        touch(block, from - block->start, to - block->start, what & 1);
    }
}

static void call(IRSB *out, IRExpr *address, Int bytes, Bool write, IRExpr *guard) {
    IRDirty *dirty = unsafeIRDirty_0_N(
        2, "on_access", VG_(fnptr_to_fnentry)(on_access),
        mkIRExprVec_2(address, mkIRExpr_HWord((UWord)bytes << 1 | (write ? 1 : 0))));
    if (guard) dirty->guard = guard;
    addStmtToIRSB(out, IRStmt_Dirty(dirty));
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
                        const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word,
                        IRType host_word) {
    IRSB *out = deepCopyIRSBExceptStmts(in);
    IRTypeEnv *types = in->tyenv;
    /* The present instruction has loaded; an atomic update then has its read. */
    Bool loaded = False;
    (void)closure, (void)layout, (void)extents, (void)host, (void)guest_word, (void)host_word;
    for (Int i = 0; i < in->stmts_used; i++) {
        IRStmt *s = in->stmts[i];
        if (!s || s->tag == Ist_NoOp) continue;
        switch (s->tag) {
        case Ist_IMark:
            loaded = False;
            break;
        case Ist_WrTmp:
            if (s->Ist.WrTmp.data->tag == Iex_Load) {
                IRExpr *load = s->Ist.WrTmp.data;
                call(out, load->Iex.Load.addr, sizeofIRType(load->Iex.Load.ty), False, NULL);
                loaded = True;
            }
            break;
        case Ist_Store:
            call(out, s->Ist.Store.addr, sizeofIRType(typeOfIRExpr(types, s->Ist.Store.data)), True,
                 NULL);
            break;
        case Ist_LoadG: {
            IRLoadG *load = s->Ist.LoadG.details;
            IRType result, type;
            typeOfIRLoadGOp(load->cvt, &result, &type);
            call(out, load->addr, sizeofIRType(type), False, load->guard);
            loaded = True;
            break;
        }
        case Ist_StoreG: {
            IRStoreG *store = s->Ist.StoreG.details;
            call(out, store->addr, sizeofIRType(typeOfIRExpr(types, store->data)), True,
                 store->guard);
            break;
        }
        case Ist_CAS: {
            IRCAS *cas = s->Ist.CAS.details;
            Int bytes = sizeofIRType(typeOfIRExpr(types, cas->dataLo));
            if (cas->dataHi) bytes *= 2;
            if (!loaded) call(out, cas->addr, bytes, False, NULL);
            call(out, cas->addr, bytes, True, NULL);
            break;
        }
        case Ist_Dirty: {
            IRDirty *dirty = s->Ist.Dirty.details;
            if (dirty->mFx == Ifx_Read || dirty->mFx == Ifx_Modify)
                call(out, dirty->mAddr, dirty->mSize, False, NULL);
            if (dirty->mFx == Ifx_Write || dirty->mFx == Ifx_Modify)
                call(out, dirty->mAddr, dirty->mSize, True, NULL);
            break;
        }
        default:
            break;
        }
        addStmtToIRSB(out, s);
    }
    return out;
}

/* ---- blocks ---- */

/* The live blocks, for those that are never freed. */
static Block **live;
static UWord lives, room;

static void row(Block *block) {
    VG_(fprintf)(rows, "%lu %llu %llu %llu %llu\n", block->size, block->words[0], block->words[1],
                 block->bytes[0], block->bytes[1]);
    for (Int way = 0; way < 2; way++)
        block->words[way] = block->bytes[way] = block->moved[way] = 0;
}

static void *make(SizeT align, SizeT size, Bool zero) {
    Block *block;
    void *place = VG_(cli_malloc)(align < 16 ? 16 : align, size);
    if (!place) return NULL;
    if (zero) VG_(memset)(place, 0, size);
    block = VG_(calloc)("accesses.block", 1, sizeof *block);
    block->start = (Addr)place;
    block->size = size;
    put(block, block);
    if (touches) {
        block->serial = serials++;
        block->touched = VG_(calloc)("accesses.touched", size / SLICE + 1, 1);
        VG_(fprintf)(touches, "a,%llu,%lu", block->serial, size);
        if (align > 16) VG_(fprintf)(touches, ",%lu", align);
        VG_(fprintf)(touches, "\n");
    }
    if (lives == room) {
        room = room ? 2 * room : 1024;
        live = VG_(realloc)("accesses.live", live, room * sizeof *live);
    }
    live[lives++] = block;
    return place;
}

static void forget(Block *block) {
    put(block, NULL);
    row(block);
    if (touches) VG_(fprintf)(touches, "f,%llu\n", block->serial);
    VG_(free)(block->touched);
    VG_(free)(block);
}

static Block *find(void *place) {
    for (UWord i = lives; i-- > 0;)
        if (live[i]->start == (Addr)place) return live[i];
    return NULL;
}

static Block *take(void *place) {
    for (UWord i = lives; i-- > 0;) {
        if (live[i]->start == (Addr)place) {
            Block *block = live[i];
            live[i] = live[--lives];
            return block;
        }
    }
    return NULL;
}

static void end(void *place) {
    Block *block = take(place);
    if (!block) return;
    forget(block);
    VG_(cli_free)(place);
}

static void *a_malloc(ThreadId t, SizeT n) { (void)t; return make(16, n, False); }
static void *a_memalign(ThreadId t, SizeT align, SizeT n) { (void)t; return make(align, n, False); }
static void *a_aligned(ThreadId t, SizeT n, SizeT align) { (void)t; return make(align, n, False); }
static void *a_calloc(ThreadId t, SizeT k, SizeT n) { (void)t; return make(16, k * n, True); }
static void a_free(ThreadId t, void *p) { (void)t; end(p); }
static void a_free_aligned(ThreadId t, void *p, SizeT align) { (void)t, (void)align; end(p); }

static void *a_realloc(ThreadId t, void *old, SizeT size) {
    Block *block, *moved;
    void *place;
    SizeT kept;
    if (!old) return a_malloc(t, size);
    if (!size) {
        end(old);
        return NULL;
    }
    /* It stays if there is no room. */
    if (!find(old)) return NULL;
    place = make(16, size, False);
    if (!place) return NULL;
    block = take(old);
    moved = find(place);
    kept = block->size < size ? block->size : size;
    VG_(memcpy)(place, old, kept);
    for (SizeT at = 0; at < kept; at += SLICE) {
        touch(block, at, at + 1, False);
        touch(moved, at, at + 1, True);
    }
    forget(block);
    VG_(cli_free)(old);
    return place;
}

static SizeT a_usable(ThreadId t, void *p) {
    Block *block = block_at((Addr)p);
    (void)t;
    return block ? block->size : 0;
}

/* ---- the tool ---- */

static Bool option(const HChar *argument) {
    if (VG_STR_CLO(argument, "--rows", rows_file)) return True;
    if (VG_STR_CLO(argument, "--touches", touches_file)) return True;
    if (VG_INT_CLO(argument, "--word", word)) return True;
    return False;
}

static void usage(void) {
    VG_(printf)("    --rows=FILE    write the counts there\n"
                "    --touches=FILE write a touch trace there\n"
                "    --word=4|8     bytes of a word [4]\n");
}

static void debug_usage(void) {}

static VgFile *create(const HChar *name) {
    VgFile *file = VG_(fopen)(name, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0644);
    if (!file) {
        VG_(fmsg)("cannot write %s\n", name);
        VG_(exit)(2);
    }
    return file;
}

static void begin(void) {
    if (!rows_file || (word != 4 && word != 8)) {
        VG_(fmsg)("--rows=FILE is needed, and a word has 4 or 8 bytes\n");
        VG_(exit)(2);
    }
    rows = create(rows_file);
    if (touches_file) touches = create(touches_file);
}

static void finish(Int status) {
    (void)status;
    for (UWord i = 0; i < lives; i++) row(live[i]);
    VG_(fclose)(rows);
    if (touches) VG_(fclose)(touches);
}

static void before_options(void) {
    VG_(details_name)("accesses");
    VG_(details_version)(NULL);
    VG_(details_description)("reads and writes of each heap block");
    VG_(details_copyright_author)("GPL version 2 or later; part of Metes' tests.");
    VG_(details_bug_reports_to)("the authors of Metes");
    VG_(basic_tool_funcs)(begin, instrument, finish);
    VG_(needs_command_line_options)(option, usage, debug_usage);
    VG_(needs_malloc_replacement)(a_malloc, a_malloc, a_aligned, a_malloc, a_aligned, a_memalign,
                                  a_calloc, a_free, a_free, a_free_aligned, a_free, a_free_aligned,
                                  a_realloc, a_usable, 16);
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
