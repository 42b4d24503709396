set logscale xy
set xlabel 'mode'
set ylabel 'eigenvalue of Z^TZ'
set format y '10^\{%L\}'
set key top right
plot 'gates_spectrum.csv' using (column('mode') + 1):(column('mu') > 0 ? column('mu') : NaN) with lines lt 1 lw 2 title 'spectrum, {rows} rows', \\
  {mu:.6g} with lines lc rgb '#888888' dt 3 lw 1.5 title '1/α_\{crit\}'
