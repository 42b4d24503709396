set xlabel 't'
set ylabel 'energy'
set key outside right center noenhanced
{@changes:set arrow from {.:.17g}, graph 0 to {.:.17g}, graph 1 nohead dt '.' lc rgb '#888888'
}plot \\
{@parts:  'trajectory.csv' using 1:{#+7:d} with lines lt {#+1%9+1:d} lw 1.5 title "{.}", \\
}  'trajectory.csv' using 1:2 with lines lt 1 lw 3 title 'sum'
