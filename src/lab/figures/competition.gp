The paper's figure 3 a to d: gates that compete, without feedback and with it.
### peak
set xlabel 'penalty  α'
set ylabel 'mean peak gate probability'
set yrange [0:1.04]
set xrange [{low}:{high}]
set key right center
set arrow 1 from {critical}, graph 0 to {critical}, graph 1 nohead lc rgb '#D55E00' dt 2 lw 1.5
plot {even} with lines lc rgb '#888888' dt 3 lw 1.5 title '1/N', \
  NaN with lines lc rgb '#D55E00' dt 2 lw 1.5 title 'α_{crit}', \
  'peak.csv' using (column('alpha')):(column('peak_mean')):(column('peak_se')) with yerrorlines lt 2 dt 1 ps 0.5 title 'mean of max p, ± s.e.'
### example
set xlabel 'memory'
set ylabel 'gate probability  p*_i'
set xrange [-1:{n}]
set yrange [0:*]
set boxwidth 0.8
set style fill solid 0.7 noborder
set key top right
set offsets 0, 0, graph 0.2, 0
plot 'example.csv' using (column('memory')):(column('p')) with boxes lc rgb '#0072B2' title 'gates at α_{crit} = {critical}', {even} with lines lc rgb '#D55E00' dt 2 lw 2 title 'uniform, 1/N'
### feedback
set xlabel 'penalty  α'
set ylabel 'mean peak probability'
set yrange [-0.13:1.04]
set ytics 0, 0.2
set xrange [-0.02:{high}]
set key outside right center
### mark
set label {number} '' at {alpha}, {height} point lt {style} pt {point} ps {size} lw 1.5
### feedback plot
plot \
### feedback end
  NaN with points pt 12 ps 1.1 lc rgb '#444444' title 'theorem', \
  NaN with points pt 3 ps 1 lc rgb '#444444' title 'fold, median'
### thresholds
set xrange [{low}:{high}]
set xlabel 'coupling  λ'
set ylabel 'threshold  α'
set yrange [0:*]
set offsets 0, 0, 0.05, 0
set key top right
plot \
  'thresholds.csv' using (column('lambda')):(column('alpha_theory')) with linespoints lt 3 title 'theorem, α_{crit}(1 − λ^2β/N)', \
  '' using (column('lambda')):(column('fold_median')):(column('fold_q25')):(column('fold_q75')) with yerrorbars lt 4 dt 1 lw 1.5 pt 4 ps 1.3 title 'fold, median and quartiles', \
  '' using (column('lambda')):(column('alpha_half')):(column('alpha_half_se')) with yerrorlines lt 1 title 'mean peak = 1/2, ± s.e.'
