set cbrange [0:{parameters.n:g}]
unset grid
set border 0
unset colorbox
set xlabel 'β'
set ylabel 'λ'
set tmargin at screen 0.9
set bmargin at screen 0.2
set palette defined (0 '#ffffff', 0.5 '#cfe3f1', 1 '#6db1dc')
set multiplot
set xtics ({@parameters.beta:{#?, }'{.:.6g}' {#:d}}) scale 0
set ytics ({@parameters.lambda:{#?, }'{.:.6g}' {#:d}}) scale 0
set lmargin at screen 0.080
set rmargin at screen 0.500
set title 'minima without a context'
set xrange [-0.5:{parameters.beta.count-0.5:g}]
set yrange [-0.5:{parameters.lambda.count-0.5:g}]
plot 'cells.csv' using (int($0) % 2 == 0 ? int($0) / 2 % {parameters.beta.count} : NaN):(int($0) / {parameters.beta.count*2:d}):(column('minima')) with image pixels notitle, \\
  '' using (int($0) % 2 == 0 ? int($0) / 2 % {parameters.beta.count} : NaN):(int($0) / {parameters.beta.count*2:d}):(gprintf('%.2f', column('minima'))) with labels font ',11' tc rgb '#000000' notitle
set label 1 tc rgb '#ffffffff'
set ylabel ''
set lmargin at screen 0.560
set rmargin at screen 0.980
set title 'minima with the context'
set xrange [-0.5:{parameters.beta.count-0.5:g}]
set yrange [-0.5:{parameters.lambda.count-0.5:g}]
plot 'cells.csv' using (int($0) % 2 == 1 ? int($0) / 2 % {parameters.beta.count} : NaN):(int($0) / {parameters.beta.count*2:d}):(column('minima')) with image pixels notitle, \\
  '' using (int($0) % 2 == 1 ? int($0) / 2 % {parameters.beta.count} : NaN):(int($0) / {parameters.beta.count*2:d}):(gprintf('%.2f', column('minima'))) with labels font ',11' tc rgb '#000000' notitle
unset multiplot
set label 1 tc rgb '#555555'
