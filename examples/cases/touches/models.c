/* Counts the models of a formula in conjunctive normal form (DIMACS, file argv[1], at most 63 variables), as
 * sharpSAT does: by deciding one variable after the other, counting the parts that share none apart, and
 * keeping the count of every part (Thurley, "sharpSAT - Counting Models with Advanced Component Caching and
 * Implicit BCP", SAT 2006). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of the formula: variables without a value and the clauses between them that are not yet satisfied,
 * both in rising order. The two lists say what is left of the clauses: their other literals are false. */
struct part {
    uint32_t variables, clauses;
    uint64_t models;
    struct part *next;
    uint32_t members[];
};

struct clause {
    uint32_t size;
    int literals[];
};

static struct clause **clauses;
static uint32_t clause_count, clause_room, variable_count;
/* Of each variable: the clauses that have it; its value, 0 for none. */
static uint32_t *occurs[64], occurrences[64];
static int value[64];
static uint32_t trail[64], trail_length;

static void *room(void *old, size_t bytes) {
    void *made = realloc(old, bytes);
    if (!made) exit(3);
    return made;
}

static int is_true(int literal) { return literal > 0 ? value[literal] > 0 : value[-literal] < 0; }
static uint32_t variable_of(int literal) { return (uint32_t)abs(literal); }

static int is_satisfied(const struct clause *c) {
    for (uint32_t i = 0; i < c->size; i++)
        if (is_true(c->literals[i])) return 1;
    return 0;
}

static void assign(int literal) {
    value[variable_of(literal)] = literal > 0 ? 1 : -1;
    trail[trail_length++] = variable_of(literal);
}

static void undo(uint32_t length) {
    while (trail_length > length) value[trail[--trail_length]] = 0;
}

/* Gives values to what the clauses of `part` leave no choice; 0 if one of them cannot be satisfied. */
static int propagate(const struct part *part) {
    for (int again = 1; again;) {
        again = 0;
        for (uint32_t i = 0; i < part->clauses; i++) {
            const struct clause *c = clauses[part->members[part->variables + i]];
            uint32_t open = 0;
            int last = 0;
            if (is_satisfied(c)) continue;
            for (uint32_t j = 0; j < c->size; j++)
                if (!value[variable_of(c->literals[j])]) open++, last = c->literals[j];
            if (open == 0) return 0;
            if (open == 1) assign(last), again = 1;
        }
    }
    return 1;
}

/* ---- the parts that are counted ---- */

static struct part **cache;
static uint32_t cache_slots, cached;

static int same(const struct part *a, const struct part *b) {
    return a->variables == b->variables && a->clauses == b->clauses &&
           !memcmp(a->members, b->members, (a->variables + a->clauses) * sizeof *a->members);
}

static uint32_t hash(const struct part *part) {
    uint64_t h = part->variables;
    for (uint32_t i = 0; i < part->variables + part->clauses; i++)
        h = (h ^ part->members[i]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return (uint32_t)h;
}

static void keep(struct part *part) {
    if (cached == cache_slots) {
        uint32_t slots = cache_slots ? 2 * cache_slots : 64;
        struct part **grown = calloc(slots, sizeof *grown);
        if (!grown) exit(3);
        for (uint32_t i = 0; i < cache_slots; i++)
            for (struct part *p = cache[i], *next; p; p = next) {
                next = p->next;
                p->next = grown[hash(p) % slots];
                grown[hash(p) % slots] = p;
            }
        free(cache);
        cache = grown, cache_slots = slots;
    }
    part->next = cache[hash(part) % cache_slots];
    cache[hash(part) % cache_slots] = part;
    cached++;
}

static const struct part *kept(const struct part *part) {
    struct part *p = cache_slots ? cache[hash(part) % cache_slots] : NULL;
    while (p && !same(p, part)) p = p->next;
    return p;
}

/* ---- counting ---- */

static int rising(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The part with variable `first`, whose variables are marked in `reached`. */
static struct part *part_of(uint32_t first, uint64_t *reached) {
    uint32_t *list = NULL, used = 0, space = 0, found[64], end = 1;
    uint8_t *met = calloc(clause_count ? clause_count : 1, 1);
    if (!met) exit(3);
    found[0] = first;
    *reached |= (uint64_t)1 << first;
    for (uint32_t at = 0; at < end; at++) {
        for (uint32_t i = 0; i < occurrences[found[at]]; i++) {
            uint32_t number = occurs[found[at]][i];
            const struct clause *c = clauses[number];
            if (met[number] || is_satisfied(c)) continue;
            met[number] = 1;
            if (used == space) {
                space = space ? 2 * space : 16;
                list = room(list, space * sizeof *list);
            }
            list[used++] = number;
            for (uint32_t j = 0; j < c->size; j++) {
                uint32_t other = variable_of(c->literals[j]);
                if (value[other] || *reached >> other & 1) continue;
                *reached |= (uint64_t)1 << other;
                found[end++] = other;
            }
        }
    }
    struct part *part = room(NULL, sizeof *part + (end + used) * sizeof *part->members);
    part->variables = end, part->clauses = used, part->models = 0, part->next = NULL;
    memcpy(part->members, found, end * sizeof *found);
    if (used) memcpy(part->members + end, list, used * sizeof *list);
    qsort(part->members, end, sizeof *part->members, rising);
    qsort(part->members + end, used, sizeof *part->members, rising);
    free(list), free(met);
    return part;
}

static uint64_t count(struct part *part);

/* The models of what is left of `part`, after some variables got values: the product over its parts. */
static uint64_t product(const struct part *part) {
    struct part *parts = NULL;
    uint64_t reached = 0, models = 1;
    for (uint32_t i = 0; i < part->variables; i++) {
        uint32_t variable = part->members[i];
        if (value[variable] || reached >> variable & 1) continue;
        struct part *one = part_of(variable, &reached);
        one->next = parts;
        parts = one;
    }
    while (parts) {
        struct part *one = parts;
        parts = one->next;
        if (models) models *= count(one);
        else free(one);
    }
    return models;
}

/* The models of `part`, which is kept or freed. */
static uint64_t count(struct part *part) {
    if (part->clauses == 0) {
        uint64_t all = (uint64_t)1 << part->variables;
        free(part);
        return all;
    }
    const struct part *known = kept(part);
    if (known) {
        free(part);
        return known->models;
    }
    /* The variable in most of its clauses. */
    uint32_t chosen = part->members[0], most = 0;
    for (uint32_t i = 0; i < part->variables; i++) {
        uint32_t open = 0;
        for (uint32_t j = 0; j < occurrences[part->members[i]]; j++)
            open += !is_satisfied(clauses[occurs[part->members[i]][j]]);
        if (open > most) most = open, chosen = part->members[i];
    }
    uint64_t models = 0;
    for (int sign = 1; sign >= -1; sign -= 2) {
        uint32_t before = trail_length;
        assign(sign * (int)chosen);
        if (propagate(part)) models += product(part);
        undo(before);
    }
    part->models = models;
    keep(part);
    return models;
}

/* ---- the formula ---- */

static int read_formula(FILE *file) {
    char word[64];
    struct clause *c = room(NULL, sizeof *c);
    c->size = 0;
    while (fscanf(file, "%63s", word) == 1) {
        if (!strcmp(word, "c") || !strcmp(word, "p")) {
            unsigned variables;
            if (*word == 'p' && (fscanf(file, " cnf %u", &variables) != 1 || variables > 63)) return 0;
            if (*word == 'p') variable_count = variables;
            for (int sign = 0; sign != '\n' && sign != EOF;) sign = fgetc(file);
            continue;
        }
        int literal = atoi(word);
        if (variable_of(literal) > variable_count) return 0;
        if (literal) {
            c = room(c, sizeof *c + (c->size + 1) * sizeof *c->literals);
            c->literals[c->size++] = literal;
            continue;
        }
        if (clause_count == clause_room) {
            clause_room = clause_room ? 2 * clause_room : 16;
            clauses = room(clauses, clause_room * sizeof *clauses);
        }
        for (uint32_t i = 0; i < c->size; i++) {
            uint32_t variable = variable_of(c->literals[i]), n = occurrences[variable]++;
            occurs[variable] = room(occurs[variable], (n + 1) * sizeof **occurs);
            occurs[variable][n] = clause_count;
        }
        clauses[clause_count++] = c;
        c = room(NULL, sizeof *c);
        c->size = 0;
    }
    free(c);
    return variable_count > 0;
}

int main(int argc, char **arguments) {
    FILE *file = argc == 2 ? fopen(arguments[1], "r") : NULL;
    if (!file || !read_formula(file)) {
        fprintf(stderr, "models: give a file in DIMACS of at most 63 variables\n");
        return 2;
    }
    fclose(file);
    struct part *whole = room(NULL, sizeof *whole + (variable_count + clause_count) * sizeof *whole->members);
    whole->variables = variable_count, whole->clauses = clause_count;
    for (uint32_t i = 0; i < variable_count; i++) whole->members[i] = i + 1;
    for (uint32_t i = 0; i < clause_count; i++) whole->members[variable_count + i] = i;
    uint64_t models = propagate(whole) ? product(whole) : 0;
    printf("%llu models, %u parts counted\n", (unsigned long long)models, cached);
    for (uint32_t i = 0; i < cache_slots; i++)
        for (struct part *p = cache[i], *next; p; p = next) next = p->next, free(p);
    for (uint32_t i = 0; i < clause_count; i++) free(clauses[i]);
    for (uint32_t i = 0; i < 64; i++) free(occurs[i]);
    free(cache), free(clauses), free(whole);
    return 0;
}
