set xtics 0, {layer_step:d}
set xrange [-0.5:{layer_high:g}]
set xlabel 'layer'
set bmargin at screen 0.27
set key at screen 0.52, screen 0.105 center center horizontal maxrows 2
set ylabel 'probability of the labels together'
set yrange [-0.02:1.02]
plot \\
{@curves:  'neff.csv' using (column('shots') == {k:d} ? column('layer') : NaN):(column('label_mass')-1.96*column('label_mass_sd')/sqrt(column('queries'))):(column('label_mass')+1.96*column('label_mass_sd')/sqrt(column('queries'))) with filledcurves lt {#%9+1:d} fs transparent solid 0.15 noborder notitle, \\
}{@curves:{#?, \\
}  'neff.csv' using (column('shots') == {k:d} ? column('layer') : NaN):(column('label_mass')) with linespoints lt {#%9+1:d} title '{k?{k:d} shot{k=1?|s}|zero-shot}'}
