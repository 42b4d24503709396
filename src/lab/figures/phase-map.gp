{parameters.load.1=null?|{parameters.x=load?set logscale x 2
}{parameters.y=load?set logscale y 2
}}unset grid
set border 15
set xlabel '{parameters.x=load?load  N/d}{parameters.x=lambda?coupling  λ}{parameters.x=alpha?penalty  α}{parameters.x=sigma_q?query noise  σ_q}'
set ylabel '{parameters.y=load?load  N/d}{parameters.y=lambda?coupling  λ}{parameters.y=alpha?penalty  α}{parameters.y=sigma_q?query noise  σ_q}' offset -1
set lmargin at screen 0.12
set rmargin at screen 0.83
set tmargin at screen 0.96
set bmargin at screen 0.19
set cblabel 'accuracy' offset 1
set cbrange [0:1]
set view map
set pm3d corners2color mean
set autoscale xfix
set autoscale yfix
set palette defined (0 '#fcfdbf', 0.25 '#fe9f6d', 0.5 '#de4968', 0.75 '#8c2981', 1 '#3b0f70')
set contour base
set cntrparam levels discrete 0.1, 0.25, 0.5, 0.75, 0.9
set cntrlabel onecolor font ',10' start 5 interval 60
set style textbox opaque noborder margins 0.3,0.2
set datafile nocolumnheaders
unset key
splot $map nonuniform matrix using 1:2:3 with pm3d, \\
  $map nonuniform matrix using 1:2:3 with lines lc rgb '#000000' lw 1.2 nosurface, \\
  $map nonuniform matrix using 1:2:3 with labels boxed font ',10' tc rgb '#000000' nosurface
