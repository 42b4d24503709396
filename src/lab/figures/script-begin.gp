do for [kind in 'svg png pdf'] \{
if (kind eq 'svg') \{ set terminal svg size {width:d},{height:d} dynamic enhanced font 'DejaVu Sans,14' background 'white' \}
if (kind eq 'png') \{ set terminal pngcairo size {width*2:d},{height*2:d} enhanced font 'DejaVu Sans,14' fontscale 1.6 linewidth 1.6 pointscale 1.6 background 'white' \}
if (kind eq 'pdf') \{ set terminal pdfcairo size {width/100:.2f}in,{height/100:.2f}in enhanced font 'DejaVu Sans,14' fontscale 0.72 background 'white' \}
set output prefix.'{name}.'.kind
