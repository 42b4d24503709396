# basins.gnuplot: three memories, one query, three contexts; called by make.sh with kind and dir set.
set encoding utf8
if (kind eq 'svg') { set terminal svg size 900,330 dynamic enhanced font 'DejaVu Sans,13' background 'white' }
if (kind eq 'png') { set terminal pngcairo size 1800,660 enhanced font 'DejaVu Sans,13' fontscale 1.7 linewidth 1.6 pointscale 1.7 background 'white' }
set output 'basins.'.kind
unset border
unset tics
unset key
unset colorbox
set size ratio -1
set xrange [-0.14:1.14]
set yrange [-0.17:1.02]
set palette defined (0 '#9ecae1', 1 '#fdd49e', 2 '#c7e9c0')
set cbrange [0:2]
array titles[3] = ['no context', 'a weak context', 'a stronger context']
set multiplot
do for [k = 0:2] {
    set lmargin at screen 0.01 + 0.33 * k
    set rmargin at screen 0.325 + 0.33 * k
    set tmargin at screen 0.9
    set bmargin at screen 0.02
    set title titles[k + 1] offset 0,-0.4
    set label 1 'memory 1' at 0,-0.07 center font ',11'
    set label 2 'memory 2' at 1,-0.07 center font ',11'
    set label 3 'memory 3' at 0.5,0.93 center font ',11'
    plot dir.'/basins' index 0 using ($1 == k ? $2 : NaN):3:4 with points pt 5 ps 0.34 lc palette, \
         dir.'/basins' index 1 using ($1 == k && strcol(4) eq 'saddle' ? $2 : NaN):3 with points pt 8 ps 1.3 lw 2 lc rgb '#444444', \
         dir.'/basins' index 1 using ($1 == k && strcol(4) eq 'minimum' ? $2 : NaN):3 with points pt 7 ps 1.3 lc rgb '#000000'
}
unset multiplot
