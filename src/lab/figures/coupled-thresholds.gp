set xrange [{parameters.lambda.0-0.1:.17g}:{parameters.lambda.last+0.1:.17g}]
set xlabel 'coupling  λ'
set ylabel 'threshold  α'
set yrange [0:*]
set offsets 0, 0, 0.05, 0
set key top right
plot \\
  'thresholds.csv' using (column('lambda')):(column('alpha_theory')) with linespoints lt 3 title 'theorem, α_\{crit\}(1 − λ^2β/N)', \\
  '' using (column('lambda')):(column('fold_median')):(column('fold_q25')):(column('fold_q75')) with yerrorbars lt 4 dt 1 lw 1.5 pt 4 ps 1.3 title 'fold, median and quartiles', \\
  '' using (column('lambda')):(column('alpha_half')):(column('alpha_half_se')) with yerrorlines lt 1 title 'mean peak = 1/2, ± s.e.'
