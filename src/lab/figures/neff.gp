set xtics 0, {layer_step:d}
set xrange [-0.5:{layer_high:g}]
set xlabel 'layer'
set bmargin at screen 0.27
set key at screen 0.52, screen 0.105 center center horizontal maxrows 2
set ylabel 'effective number of words  N_\{eff\}'
set logscale y
set format y '10^\{%T\}'
set yrange [0.9:{words*2.2:g}]
plot \\
  {words:.0f} with lines lc rgb '#888888' dt 1 lw 1.5 title 'vocabulary', \\
  {labels:d} with lines lc rgb '#888888' dt 3 lw 1.5 title 'labels', \\
{@curves:  'neff.csv' using (column('shots') == {k:d} ? column('layer') : NaN):(column('neff_entropy')*exp(-1.96*column('log_neff_entropy_sd')/sqrt(column('queries')))):(column('neff_entropy')*exp(1.96*column('log_neff_entropy_sd')/sqrt(column('queries')))) with filledcurves lt {#%9+1:d} fs transparent solid 0.15 noborder notitle, \\
}{@curves:{#?, \\
}  'neff.csv' using (column('shots') == {k:d} ? column('layer') : NaN):(column('neff_entropy')) with linespoints lt {#%9+1:d} title '{k?{k:d} shot{k=1?|s}|zero-shot}'}
