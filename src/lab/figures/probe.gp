set xtics 0, {layer_step:d}
set xrange [-0.5:{layer_high:g}]
set xlabel 'layer'
set tmargin at screen 0.91
set bmargin at screen 0.33
set lmargin at screen 0.08
set rmargin at screen 0.48
unset key
set title 'separability'
set ylabel 'held-out accuracy of a probe'
set yrange [0:1.02]
plot {chance:.6g} with lines lc rgb '#888888' dt 3 lw 1.5 notitle, \\
{@curves:  'probe.csv' using (column('shots') == {k:d} ? column('layer') : NaN):(column('separability')-1.96*column('separability_se')):(column('separability')+1.96*column('separability_se')) with filledcurves lt {#%9+1:d} fs transparent solid 0.15 noborder notitle, \\
}{@curves:{#?, \\
}  'probe.csv' using (column('shots') == {k:d} ? column('layer') : NaN):(column('separability')) with linespoints lt {#%9+1:d} title '{k?{k:d} shot{k=1?|s}|zero-shot}'}
unset label 1
set lmargin at screen 0.58
set rmargin at screen 0.98
set title 'alignment'
set ylabel 'margin of the cosine'
set yrange [*:*]
plot 0 with lines lc rgb '#888888' dt 3 lw 1.5 notitle, \\
{@curves:  'probe.csv' using (column('shots') == {k:d} ? column('layer') : NaN):(column('margin')-1.96*column('margin_sd')/{root:.6g}):(column('margin')+1.96*column('margin_sd')/{root:.6g}) with filledcurves lt {#%9+1:d} fs transparent solid 0.15 noborder notitle, \\
}{@curves:{#?, \\
}  'probe.csv' using (column('shots') == {k:d} ? column('layer') : NaN):(column('margin')) with linespoints lt {#%9+1:d} title '{k?{k:d} shot{k=1?|s}|zero-shot}'}
unset label 1
set lmargin at screen 0.02
set rmargin at screen 0.98
set tmargin at screen 0.170
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
{@curves:  NaN with linespoints lt {#%9+1:d} title '{k?{k:d} shot{k=1?|s}|zero-shot}', \\
}  NaN with lines lc rgb '#888888' dt 3 lw 1.5 title 'chance'
set border 3
set tics nomirror out
set xtics nomirror out
set ytics nomirror out
set grid ytics lc rgb '#dddddd' lw 1 dt 1
unset key
unset multiplot
