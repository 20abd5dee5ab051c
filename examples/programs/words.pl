# Builds a hash of lists, cuts it down, joins and splits it.
my %h; my @l; my $s = 12345;
for my $i (1..30000) { $s = ($s * 1103515245 + 12345) % 2147483648; my $k = "key" . ($s % 9000); push @{$h{$k}}, "value $i " . ('x' x ($s % 40)); delete $h{"key" . ($s % 777)} if $i % 50 == 0; }
my $n = 0; for my $k (sort keys %h) { $n += scalar @{$h{$k}}; push @l, join(',', @{$h{$k}}); } @l = map { [split /,/] } @l; print scalar(@l), " $n\n";
