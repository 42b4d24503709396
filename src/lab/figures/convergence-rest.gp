set logscale y
set yrange [*:2000 < * < 1e9]
set key right top
set logscale x
set xlabel 'contraction constant  βλ^2 / 2η_\{min\}'
set ylabel 'mean time to rest,  t / τ'
set arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb '#D55E00' dt 2 lw 1.5
plot NaN with lines lc rgb '#D55E00' dt 2 lw 1.5 title 'one fixed point to the left, proved'{@parameters.alpha:, \\
  'cells.csv' using (abs(column('alpha') - {.:.17g}) < 1e-12 ? column('contraction') : NaN):(column('time')) with points lt {#%9+1:d} ps 1.2 title 'α = {.:.6g}'}
