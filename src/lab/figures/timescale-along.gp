set logscale x
set format x '10^\{%T\}'
set xlabel 't / τ_s'
set ylabel 'mean N_\{eff\}  (exp of entropy)'
set yrange [0:*]
set xrange [1e-3:*]
set key outside right center
plot \\
{@shown:{#?, \\
}  'along.csv' using (abs(column('ratio') - {.:.17g}) <= {.+1*1e-9:.3g} ? column('t') : NaN):(column('neff_mean')):(column('neff_se')) with yerrorbars lt {#%9+1:d} dt 1 lw 1 ps 0 notitle, \\
  'along.csv' using (abs(column('ratio') - {.:.17g}) <= {.+1*1e-9:.3g} ? column('t') : NaN):(column('neff_mean')) with lines lt {#%9+1:d} title 'τ_r/τ_s = {.:.6g}'}
