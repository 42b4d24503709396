One prompt or one bank at a time: lens, trace and landscape.
### lens
set palette defined (0 '#4a9bd0', 0.35 '#9ecae1', 0.7 '#deebf7', 1 '#ffffff')
### lens panel
set tmargin at screen {high}
set bmargin at screen {low}
set lmargin at screen {left}
set rmargin at screen {right}
set xrange [-0.5:{tokens}]
set yrange [-0.5:{layers}]
set ylabel 'layer'
set cblabel 'log_{10} N_{eff}'
set cbrange [0:{most}]
set colorbox user origin screen {bar}, screen {low} size screen {bar_width}, screen {bar_height}
unset grid
unset key
### lens plot
plot '{file}' using (column('token')):(column('layer')):(log10(column('neff'))) with image pixels, \
  $words{which} using 1:2:(stringcolumn(3)) with labels font ',9' noenhanced notitle
unset label 1
### trace
set lmargin at screen 0.1
set rmargin at screen 0.84
set xrange [-0.5:{tokens}]
unset key
unset xtics
set tmargin at screen 0.97
set bmargin at screen 0.77
set ylabel 'KL in nats'
set yrange [0:*]
plot 'trace.csv' using (column('layer') == 0 ? column('token') : NaN):(column('kl')) with linespoints pt 7 ps 0.4 lc rgb '#1f6f9f' notitle
unset label 1
unset grid
set yrange [-0.5:{layers}]
set palette defined (0 '#ffffff', 0.3 '#deebf7', 0.6 '#9ecae1', 1 '#14507a')
set tmargin at screen 0.745
set bmargin at screen 0.445
set ylabel 'layer'
set cblabel '|h - h without|'
set cbrange [0:*]
plot 'trace.csv' using (column('token')):(column('layer')):(column('context_norm')) with image pixels notitle
### trace second
set palette defined (-1 '#b2532c', 0 '#ffffff', 1 '#14507a')
set tmargin at screen 0.420
set bmargin at screen 0.120
set ylabel 'layer'
set cblabel 'cosine with the first token'
set cbrange [-1:1]
plot 'trace.csv' using (column('token')):(column('layer')):(column('persistence')) with image pixels notitle
### end
unset multiplot
### landscape
set multiplot
set xlabel 'basin'
set ylabel 'energy above the lowest'
set key top right horizontal samplen 1
set xrange [*:*]
set yrange [*:*]
H = 0
### landscape height
stats 'landscape.csv' using (column('context') == {context} ? column('energy') : NaN) nooutput name 'E{context}'
H = E{context}_max - E{context}_min > H ? E{context}_max - E{context}_min : H
### landscape ranges
H = H == 0 ? 1 : H
set xrange [-0.04:1.08]
set yrange [-0.06*H:1.25*H]
### landscape panel
set lmargin at screen {left}
set rmargin at screen {right}
set title '{title}'
E_min = E{context}_min
plot 'landscape.csv' using (column('context') == {context} && column('minimum') == 1 ? column('basin') : NaN):(column('energy') - E_min) with points pt 7 ps 0.9 lc rgb '#1f6f9f' title 'minimum, its winner', \
  '' using (column('context') == {context} && column('minimum') == 0 ? column('basin') : NaN):(column('energy') - E_min) with points pt 8 ps 1 lc rgb '#b2532c' title 'saddle', \
  '' using (column('context') == {context} && column('basin') >= 0.02 ? column('basin') : NaN):(column('energy') - E_min):(gprintf('%.0f', column('winner'))) with labels offset 1.3,0.3 font ',9' notitle
