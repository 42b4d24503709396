# {name}.gp: draws {name}.svg, .png and .pdf from the CSV files beside it:  gnuplot {name}.gp
set encoding utf8
set datafile separator ','
set datafile columnheaders
set datafile missing NaN
if (!exists('prefix')) prefix = ''
set linetype 1 lc rgb '#000000' dt 1 pt 7 lw 2 ps 0.7
set linetype 2 lc rgb '#0072B2' dt '_' pt 5 lw 2 ps 0.7
set linetype 3 lc rgb '#D55E00' dt '-' pt 9 lw 2 ps 0.7
set linetype 4 lc rgb '#009E73' dt '_.' pt 13 lw 2 ps 0.7
set linetype 5 lc rgb '#CC79A7' dt '._.' pt 11 lw 2 ps 0.7
set linetype 6 lc rgb '#E69F00' dt '.' pt 6 lw 2 ps 0.7
set linetype 7 lc rgb '#56B4E9' dt '_..' pt 4 lw 2 ps 0.7
set linetype 8 lc rgb '#666666' dt '-.' pt 8 lw 2 ps 0.7
set linetype 9 lc rgb '#8C510A' dt (8,3) pt 10 lw 2 ps 0.7
set border 3 lw 1 lc rgb '#444444'
set tics nomirror out
set grid ytics lc rgb '#dddddd' lw 1 dt 1
set key font ',12' samplen 3 spacing 1.1
set bmargin 5.4
set label 1 "{caption}" at screen 0.01, screen 0.022 font ',9' tc rgb '#555555'
