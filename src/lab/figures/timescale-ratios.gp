set logscale x
set xlabel 'τ_r / τ_s'
set ylabel 'share of trials'
set yrange [0:1.04]
set key left top
plot \\
  'ratios.csv' using (column('ratio')):(column('accuracy')):(column('accuracy_se')) with yerrorlines lt 1 title 'the target is retrieved, ± s.e.', \\
  '' using (column('ratio')):(column('context_first')) with linespoints lt 3 title 'context settles before retrieval decides'
