set xlabel 'layer of the edit'
set ylabel 'accuracy'
set xrange [-0.5:{high:g}]
set yrange [-0.02:1.02]
set key outside right center
plot \\
{zero_shot=null?|  {zero_shot:.6g} with lines lt 8 lw 1.5 title 'zero-shot', \\
}{icl=null?|  {icl:.6g} with lines lt 2 lw 1.5 title 'with demonstrations', \\
}{readout=null?|  {readout:.6g} with lines lt 1 dt 4 lc rgb '#7B4EA3' lw 1.5 title 'readout: query + λ context', \\
}  '+' using ({best.layer:d}):({controls.random:.6g}) every ::0::0 with points lt 4 pt 12 ps 1.4 lw 2 title 'random, same norm', \\
  '+' using ({best.layer:d}):({controls.flipped:.6g}) every ::0::0 with points lt 5 pt 10 ps 1.4 lw 2 title 'flipped demonstrations', \\
  '+' using ({best.layer:d}):({controls.other_task:.6g}) every ::0::0 with points lt 6 pt 8 ps 1.4 lw 2 title 'another task', \\
  '+' using ({best.layer:d}):({controls.label_rows:.6g}) every ::0::0 with points lt 7 pt 14 ps 1.4 lw 2 title 'mean of answer rows', \\
{&by_kind.add:{@scales:  'inject.csv' using (column('shots') == {k:d} && column('kind') == 0 && abs(column('scale') - {.:.17g}) < 1e-9 ? column('layer') + -0.08 : NaN):(column('accuracy')):(column('se')) with yerrorlines lw 2 pt 7 ps 0.7 lc rgb '#000000' dt {#+1:d} title 'add{scales.1=null?|, scale {.:.6g}}', \\
}}{&by_kind.replace:{@scales:  'inject.csv' using (column('shots') == {k:d} && column('kind') == 1 && abs(column('scale') - {.:.17g}) < 1e-9 ? column('layer') + 0.08 : NaN):(column('accuracy')):(column('se')) with yerrorlines lw 2 pt 9 ps 0.7 lc rgb '#D55E00' dt {#+1:d} title 'replace{scales.1=null?|, scale {.:.6g}}', \\
}}  NaN notitle
