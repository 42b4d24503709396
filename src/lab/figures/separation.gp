The paper's figure 2. "curves" between sections are the curves of script.gp.
### accuracy
set xlabel 'query noise  σ_q'
set ylabel 'retrieval accuracy'
set yrange [0:1.02]
set key outside right center
plot \
### bound
set xlabel 'effective separation gap  Δ'
set ylabel 'target probability  P(μ)'
set yrange [-0.02:1.02]
set xrange [{low}:{high}]
set key outside right center
plot \
### points
  'sample.csv' using (abs(column('lambda') - {lambda}) < 1e-9 ? column('gap') : NaN):(column('p')) with points lt {style} ps 0.35 lw 0.7 notitle, \
  NaN with points lt {style} ps 0.9 title 'λ = {short}', \
### bound end
  'bound.csv' using (column('gap')):(column('bound')) with lines lc rgb '#D00000' lw 3 dt 1 title 'lower bound'
### gaps
set xlabel 'coupling  λ'
set ylabel 'gap Δ at σ_q ≈ 1'
set boxwidth 0.5
set style fill solid 0.25 border
set xrange [-0.6:{high}]
set key outside right center
set xtics ({tics})
plot \
### threshold
  {gap} with lines lc rgb '#D00000' lw 1.5 dt {dash} title 'P ≥ {p}', \
### gaps end
  'gaps.csv' using ($0):(column('q25')):(column('q05')):(column('q95')):(column('q75')) with candlesticks lc rgb '#0072B2' lw 1.5 dt 1 title '25-75%, 5-95%' whiskerbars, \
  '' using ($0):(column('median')):(column('median')):(column('median')):(column('median')) with candlesticks lc rgb '#000000' lw 3 dt 1 notitle, \
  NaN with lines lc rgb '#000000' lw 3 dt 1 title 'median'
