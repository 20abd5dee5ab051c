<?php
// Trains a network of one hidden layer on exclusive or, by gradient descent, argv[1] epochs; fails if it has
// not learned it. Vectors are made anew in each step, as such programs are written.

mt_srand(1);
$epochs = (int) ($argv[1] ?? 80);
$hidden = 3;
$weight = fn () => mt_rand() / mt_getrandmax() * 2 - 1;
$in = array_map(fn () => array_map($weight, range(0, 2)), range(1, $hidden));
$out = array_map($weight, range(0, $hidden));
$cases = [[[0, 0], 0], [[0, 1], 1], [[1, 0], 1], [[1, 1], 0]];

function squash(float $x): float { return 1 / (1 + exp(-$x)); }

function forward(array $in, array $out, array $input): array {
    $input[] = 1;
    $layer = array_map(fn ($row) => squash(array_sum(array_map(fn ($w, $x) => $w * $x, $row, $input))), $in);
    $layer[] = 1;
    return [$input, $layer, squash(array_sum(array_map(fn ($w, $x) => $w * $x, $out, $layer)))];
}

for ($epoch = 0; $epoch < $epochs; $epoch++) {
    foreach ($cases as [$input, $wanted]) {
        [$input, $layer, $result] = forward($in, $out, $input);
        $slope = ($wanted - $result) * $result * (1 - $result);
        foreach ($in as $h => $row) {
            $back = $slope * $out[$h] * $layer[$h] * (1 - $layer[$h]);
            $in[$h] = array_map(fn ($w, $x) => $w + 6 * $back * $x, $row, $input);
        }
        $out = array_map(fn ($w, $x) => $w + 6 * $slope * $x, $out, $layer);
    }
}
$wrong = 0;
foreach ($cases as [$input, $wanted]) {
    $wrong += abs(forward($in, $out, $input)[2] - $wanted) > 0.5 ? 1 : 0;
}
echo "$epochs epochs, $wrong of 4 wrong\n";
exit($wrong ? 1 : 0);
