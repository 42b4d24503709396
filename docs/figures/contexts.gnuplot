# Called by make.sh, which sets kind (svg or png) and dir. Black, grey and one blue whose lightness
# differs from both, so that the figure survives a black-and-white printer and colour blindness.
if (kind eq "svg") { set terminal svg size 1080,480 dynamic background "#ffffff" font "Helvetica,14" } \
else { set terminal pngcairo size 1620,720 background "#ffffff" font "Helvetica,14" fontscale 1.2 linewidth 1.4 }
set output "contexts." . kind
data = dir . "/data"
label(k) = system(sprintf("sed -n %dp %s/labels", k + 1, dir))
heading(k) = k == 0 ? "query alone" : sprintf("query + context “near %d”", 10 + 20 * (k - 1))

set border 3 lw 1 lc rgb "#444444"
set tics nomirror out scale 0.5 textcolor rgb "#222222"
set xrange [-1.5:60.5]
set xtics 0,10,50
set style fill solid 1.0 noborder
set boxwidth 0.75
unset key

set label 3 "energy  −ln p / β" at screen 0.016, screen 0.735 center rotate
set label 4 "probability  p" at screen 0.016, screen 0.30 center rotate

left = 0.065; width = 0.205; step = 0.238
set multiplot
do for [k = 0:3] {
    set lmargin at screen left + k * step
    set rmargin at screen left + k * step + width

    # the landscape
    set tmargin at screen 0.91
    set bmargin at screen 0.56
    set yrange [0:2.4]
    set ytics 0,1,2
    set format x ""
    unset xlabel
    set format y (k == 0 ? "%g" : "")
    set title heading(k) font ",15" offset 0,-0.4
    if (k == 1) { set label 2 "dashed: query alone" at graph 0.5, graph 0.96 center font ",11" textcolor rgb "#555555" }
    if (k == 0) { plot data index 0 using 1:3 with lines lw 2.2 lc rgb "#000000" } \
    else { plot data index 0 using 1:3 with lines lw 1.4 dt (7,5) lc rgb "#777777", \
                data index k using 1:3 with lines lw 2.2 lc rgb "#000000" }
    unset label 2

    # who is recalled
    set title label(k) font ",12" offset 0,-0.6 textcolor rgb "#222222"
    set tmargin at screen 0.46
    set bmargin at screen 0.14
    set yrange [0:1]
    set ytics 0,0.5,1
    set format x "%g"
    set xlabel "memory" offset 0,0.4
    set format y (k == 0 ? "%g" : "")
    plot data index k using 1:2 with boxes lc rgb "#0072B2"
    unset label 3
    unset label 4
}
unset multiplot
