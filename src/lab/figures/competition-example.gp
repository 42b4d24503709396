set xlabel 'memory'
set ylabel 'gate probability  p*_i'
set xrange [-1:{parameters.n:g}]
set yrange [0:*]
set boxwidth 0.8
set style fill solid 0.7 noborder
set key top right
set offsets 0, 0, graph 0.2, 0
plot 'example.csv' using (column('memory')):(column('p')) with boxes lc rgb '#0072B2' title 'gates at α_\{crit\} = {alpha_crit:.4g}', {even:.17g} with lines lc rgb '#D55E00' dt 2 lw 2 title 'uniform, 1/N'
