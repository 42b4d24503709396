set xlabel 'penalty  α'
set ylabel 'mean peak gate probability'
set yrange [0:1.04]
set xrange [{alpha.0-0.02:.17g}:{alpha.last+0.02:.17g}]
set key right center
set arrow 1 from {alpha_crit:.17g}, graph 0 to {alpha_crit:.17g}, graph 1 nohead lc rgb '#D55E00' dt 2 lw 1.5
plot {even:.17g} with lines lc rgb '#888888' dt 3 lw 1.5 title '1/N', \\
  NaN with lines lc rgb '#D55E00' dt 2 lw 1.5 title 'α_\{crit\}', \\
  'peak.csv' using (column('alpha')):(column('peak_mean')):(column('peak_se')) with yerrorlines lt 2 dt 1 ps 0.5 title 'mean of max p, ± s.e.'
