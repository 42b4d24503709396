$over0 << EOD
k,a0,se0,a1,se1,a2,se2,a3,se3,a4,se4,a5,se5,a6,se6{@shots:
{k:d},{zero_shot.restricted:.6g},{zero_shot.restricted_se:.6g},{icl.restricted:.6g},{icl.restricted_se:.6g},{best.restricted.held_out:.6g},{best.restricted.held_out_se:.6g},{controls.flipped.restricted.held_out:.6g},{controls.flipped.restricted.held_out_se:.6g},{controls.other_task.restricted.held_out:.6g},{controls.other_task.restricted.held_out_se:.6g},{controls.label_mean.restricted.held_out:.6g},{controls.label_mean.restricted.held_out_se:.6g},{controls.centred.held_out:.6g},{controls.centred.held_out_se:.6g}}
EOD
$over1 << EOD
k,a0,se0,a1,se1,a2,se2,a3,se3,a4,se4,a5,se5,a6,se6{@shots:
{k:d},{zero_shot.full:.6g},{zero_shot.full_se:.6g},{icl.full:.6g},{icl.full_se:.6g},{best.full.held_out:.6g},{best.full.held_out_se:.6g},{controls.flipped.full.held_out:.6g},{controls.flipped.full.held_out_se:.6g},{controls.other_task.full.held_out:.6g},{controls.other_task.full.held_out_se:.6g},{controls.label_mean.full.held_out:.6g},{controls.label_mean.full.held_out_se:.6g},{controls.centred.held_out:.6g},{controls.centred.held_out_se:.6g}}
EOD
