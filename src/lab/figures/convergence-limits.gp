set yrange [0:*]
set offsets 0, 0, graph 0.08, 0
set key right bottom
set logscale x
set xlabel 'contraction constant  βλ^2 / 2η_\{min\}'
set ylabel 'different ends of one problem'
set arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb '#D55E00' dt 2 lw 1.5
plot NaN with lines lc rgb '#D55E00' dt 2 lw 1.5 title 'one fixed point to the left, proved'{@parameters.alpha:, \\
  'cells.csv' using (abs(column('alpha') - {.:.17g}) < 1e-12 ? column('contraction') : NaN):(column('limits')) with points lt {#%9+1:d} ps 1.2 title 'α = {.:.6g}'}
