// The stages of a pipeline as Megatron-LM's --pipeline-model-parallel-layout says them: E the embedding, t a layer, L
// the head, | between virtual stages, in model order. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace layline::exporting {

// "Et*10|t*10|t*9L".
std::string stage_pattern(const std::vector<int64_t>& stage_layers);

// Layers of each stage; repeats such as "t*3" and "(tt|)*4" are expanded. Throws base::InputError naming `where`: other
// symbols, unbalanced parentheses, an E that is not first or an L that is not last, more than 100,000 layers.
std::vector<int64_t> parse_stage_pattern(std::string_view pattern, std::string_view where);

}  // namespace layline::exporting
