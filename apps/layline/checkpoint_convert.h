// `layline checkpoint export`, `import` and `convert`.
#pragma once

namespace CLI {
class App;
}

namespace layline::app {

void add_checkpoint_conversions(CLI::App& checkpoint);

}  // namespace layline::app
