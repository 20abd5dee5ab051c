/* The fast Fourier transform as it is first written down: recursive, with new arrays for the even and the
 * odd elements of every part, down to 128 elements, whose sums are taken as they stand. Transforms a vector of
 * argv[1] elements (a power of two) and back, and fails if it is not what it was. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

enum { SMALL = 128 };

/* The n-th roots of one, forwards. */
static number *roots;
static size_t root_count;

static number *vector(size_t n) {
    number *made = malloc(n * sizeof *made);
    if (!made) exit(3);
    return made;
}

static number root(size_t k, size_t n, int back) {
    number of = roots[k % n * (root_count / n)];
    return back ? conj(of) : of;
}

/* The transform of the `n` elements at `from`, in a new array. */
static number *transform(const number *from, size_t n, int back) {
    number *to = vector(n);
    if (n <= SMALL) {
        for (size_t i = 0; i < n; i++) {
            number sum = 0;
            for (size_t j = 0; j < n; j++) sum += root(i * j, n, back) * from[j];
            to[i] = sum;
        }
        return to;
    }
    size_t half = n / 2;
    number *even = vector(half), *odd = vector(half);
    for (size_t i = 0; i < half; i++) {
        even[i] = from[2 * i];
        odd[i] = from[2 * i + 1];
    }
    number *low = transform(even, half, back), *high = transform(odd, half, back);
    free(even), free(odd);
    for (size_t i = 0; i < half; i++) {
        number turned = root(i, n, back) * high[i];
        to[i] = low[i] + turned;
        to[i + half] = low[i] - turned;
    }
    free(low), free(high);
    return to;
}

int main(int count, char **arguments) {
    size_t n = count > 1 ? strtoul(arguments[1], NULL, 10) : 1024;
    if (n < 2 || (n & (n - 1))) {
        fprintf(stderr, "fft: the vector's length must be a power of two\n");
        return 2;
    }
    roots = vector(n), root_count = n;
    for (size_t i = 0; i < n; i++) roots[i] = cexp(-2 * acos(-1) * I * (double)i / (double)n);
    number *signal = vector(n);
    for (size_t i = 0; i < n; i++) signal[i] = (double)(i * 2654435761u % 1000) / 1000;
    number *there = transform(signal, n, 0), *back = transform(there, n, 1);
    double worst = 0;
    for (size_t i = 0; i < n; i++) worst = fmax(worst, cabs(back[i] / (double)n - signal[i]));
    free(there), free(back), free(signal), free(roots);
    printf("%zu elements, largest error %.0e\n", n, worst);
    return worst < 1e-9 ? 0 : 1;
}
