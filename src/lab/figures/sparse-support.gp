set ylabel 'memories with a weight, mean'
set yrange [0:*]
set xlabel 'query noise  σ_q'
set key outside right center
plot \\
  'cells.csv' using (column('order') == 1.5 && column('context') == 1 ? column('sigma_q') : NaN):(column('support')) with linespoints lt 2 dt 1 title '1.5-entmax, context', \\
  'cells.csv' using (column('order') == 1.5 && column('context') == 0 ? column('sigma_q') : NaN):(column('support')) with linespoints lt 2 dt 2 title '1.5-entmax, none', \\
  'cells.csv' using (column('order') == 2 && column('context') == 1 ? column('sigma_q') : NaN):(column('support')) with linespoints lt 3 dt 1 title 'sparsemax, context', \\
  'cells.csv' using (column('order') == 2 && column('context') == 0 ? column('sigma_q') : NaN):(column('support')) with linespoints lt 3 dt 2 title 'sparsemax, none'
