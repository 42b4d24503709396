set lmargin at screen 0.1
set rmargin at screen 0.84
set xrange [-0.5:{tokens_high:g}]
unset key
unset xtics
set tmargin at screen 0.97
set bmargin at screen 0.77
set ylabel 'KL in nats'
set yrange [0:*]
plot 'trace.csv' using (column('layer') == 0 ? column('token') : NaN):(column('kl')) with linespoints pt 7 ps 0.4 lc rgb '#1f6f9f' notitle
unset label 1
unset grid
set yrange [-0.5:{layers_high:g}]
set palette defined (0 '#ffffff', 0.3 '#deebf7', 0.6 '#9ecae1', 1 '#14507a')
set tmargin at screen 0.745
set bmargin at screen 0.445
set ylabel 'layer'
set cblabel '|h - h without|'
set cbrange [0:*]
plot 'trace.csv' using (column('token')):(column('layer')):(column('context_norm')) with image pixels notitle
set xtics rotate by 40 right font ',10' noenhanced ({@tics:{#?, }"{piece}" {at:d}})
set palette defined (-1 '#b2532c', 0 '#ffffff', 1 '#14507a')
set tmargin at screen 0.420
set bmargin at screen 0.120
set ylabel 'layer'
set cblabel 'cosine with the first token'
set cbrange [-1:1]
plot 'trace.csv' using (column('token')):(column('layer')):(column('persistence')) with image pixels notitle
unset multiplot
