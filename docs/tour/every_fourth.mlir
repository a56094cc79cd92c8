// Every fourth key that is not behind the row's own: four causal problems on every fourth row.
attn.problem @every_fourth mask(#attn.and<#attn.causal, #attn.strided<stride = 4>>) layout(bshd) heads(16) dims(128) dtype(bf16)
