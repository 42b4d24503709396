set xlabel 'penalty  α'
set ylabel 'mean peak probability'
set yrange [-0.13:1.04]
set ytics 0, 0.2
set xrange [-0.02:{curves.last.alpha.last:.17g}]
set key outside right center
{@thresholds:{lambda>0?{alpha_theory=null?|set label {#+10:d} '' at {alpha_theory:.17g}, -0.045 point lt {#%9+1:d} pt 12 ps 1.1 lw 1.5
}}{fold_median=null?|set label {#+110:d} '' at {fold_median:.17g}, -0.095 point lt {#%9+1:d} pt 3 ps 1 lw 1.5
}}plot \\
{@parameters.lambda:{#?, \\
}  'curves.csv' using (abs(column('lambda') - {.:.17g}) <= {.+1*1e-9:.3g} ? column('alpha') : NaN):(column('peak_mean')):(column('peak_se')) with yerrorbars lt {#%9+1:d} dt 1 lw 1 ps 0 notitle, \\
  'curves.csv' using (abs(column('lambda') - {.:.17g}) <= {.+1*1e-9:.3g} ? column('alpha') : NaN):(column('peak_mean')) with lines lt {#%9+1:d} title 'λ = {.:.6g}'}, \\
  NaN with points pt 12 ps 1.1 lc rgb '#444444' title 'theorem', \\
  NaN with points pt 3 ps 1 lc rgb '#444444' title 'fold, median'
