# Writes a C program of 400 structures and functions, for a compiler to chew on.
for i in range(400):
    print("struct s%d { int a; double b[%d]; struct s%d *next; };" % (i, i % 7 + 1, max(i-1,0)))
    print("static inline int f%d(struct s%d *p, int x) { int y = x * %d; for (int i = 0; i < y; i++) { if (p && p->a > i) y += p->b[i %% %d] > 0 ? i : -1; } return y + %d; }" % (i, i, i+3, i % 7 + 1, i))
print("int main(void) { int s = 0;" + "".join("s += f%d(0, s);" % i for i in range(400)) + " return s & 1; }")
