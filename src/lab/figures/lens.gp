set palette defined (0 '#4a9bd0', 0.35 '#9ecae1', 0.7 '#deebf7', 1 '#ffffff')
{@panels:set tmargin at screen {high:.3f}
set bmargin at screen {low:.3f}
set lmargin at screen {left:.3f}
set rmargin at screen {right:.3f}
set xrange [-0.5:{tokens_high:g}]
set yrange [-0.5:{layers_high:g}]
set ylabel 'layer'
set cblabel 'log_\{10\} N_\{eff\}'
set cbrange [0:{most:.4g}]
set colorbox user origin screen {bar:.3f}, screen {low:.3f} size screen {bar_width:.3f}, screen {bar_height:.3f}
unset grid
unset key
set xtics rotate by 40 right font ',10' noenhanced ({@tics:{#?, }"{piece}" {at:d}})
plot '{file}' using (column('token')):(column('layer')):(log10(column('neff'))) with image pixels, \\
  $words{#:d} using 1:2:(stringcolumn(3)) with labels font ',9' noenhanced notitle
unset label 1
}unset multiplot
