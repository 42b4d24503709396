unset key
set xtics 0, {layer_step:d}
set xrange [-0.5:{layer_high:g}]
{@panels:set lmargin at screen {left:.3f}
set rmargin at screen {right:.3f}
set tmargin at screen 0.945
set bmargin at screen 0.605
set yrange [{least.0:.6g}:{most.0:.6g}]
{#?unset ylabel
set format y ''
|set ylabel 'mean log p of the answer'
set format y '%g'
}set title 'λ = {lambda:.6g}'
unset xlabel
plot \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 0 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_p_low')):(column('log_p_high')) with filledcurves lt 2 fs transparent solid 0.18 noborder notitle, \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 1 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_p_low')):(column('log_p_high')) with filledcurves lt 3 fs transparent solid 0.18 noborder notitle, \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 2 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_p_low')):(column('log_p_high')) with filledcurves lt 4 fs transparent solid 0.18 noborder notitle, \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 0 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_p')) with linespoints lt 2 ps 0.5 title 'right facts', \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 1 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_p')) with linespoints lt 3 ps 0.5 title 'wrong objects', \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 2 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_p')) with linespoints lt 4 ps 0.5 title 'objects of another relation', \\
  {entry.baseline.log_p:.6g} with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'
unset label 1
}{@panels:set lmargin at screen {left:.3f}
set rmargin at screen {right:.3f}
set tmargin at screen 0.535
set bmargin at screen 0.215
set yrange [{least.1:.6g}:{most.1:.6g}]
{#?unset ylabel
set format y ''
|set ylabel 'log odds against other objects'
set format y '%g'
}unset title
set xlabel 'context layer'
plot \\
{odds_band?  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 0 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_odds')-1.96*column('log_odds_gain_se')):(column('log_odds')+1.96*column('log_odds_gain_se')) with filledcurves lt 2 fs transparent solid 0.18 noborder notitle, \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 1 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_odds')-1.96*column('log_odds_gain_se')):(column('log_odds')+1.96*column('log_odds_gain_se')) with filledcurves lt 3 fs transparent solid 0.18 noborder notitle, \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 2 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_odds')-1.96*column('log_odds_gain_se')):(column('log_odds')+1.96*column('log_odds_gain_se')) with filledcurves lt 4 fs transparent solid 0.18 noborder notitle, \\
}  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 0 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_odds')) with linespoints lt 2 ps 0.5 title 'right facts', \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 1 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_odds')) with linespoints lt 3 ps 0.5 title 'wrong objects', \\
  'steer.csv' using (column('shots') == {entry.k:d} && column('context') == 2 && abs(column('lambda')-{lambda:.17g}) < 1e-12 ? column('layer') : NaN):(column('log_odds')) with linespoints lt 4 ps 0.5 title 'objects of another relation', \\
  {entry.baseline.log_odds:.6g} with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'
unset label 1
}unset label 1
set lmargin at screen 0.02
set rmargin at screen 0.98
set tmargin at screen 0.120
set bmargin at screen 0.060
unset border
unset tics
unset grid
unset title
unset colorbox
unset xlabel
unset ylabel
unset logscale
set xrange [0:1]
set yrange [0:1]
set key center center horizontal maxrows 2
plot \\
  NaN with linespoints lt 2 title 'right facts', \\
  NaN with linespoints lt 3 title 'wrong objects', \\
  NaN with linespoints lt 4 title 'objects of another relation', \\
  NaN with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'
set border 3
set tics nomirror out
set xtics nomirror out
set ytics nomirror out
set grid ytics lc rgb '#dddddd' lw 1 dt 1
unset key
unset multiplot
