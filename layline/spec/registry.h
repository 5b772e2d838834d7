// The specs that ship inside the program (built from specs/*.json), and specs read from files.
//
// Every get_* takes the path of a file, when the text has a '/' or ends in ".json" and the file is there, or else a
// shipped name or alias (case-insensitive). Errors are base::InputError with the file and JSON path, or the nearest
// shipped name. Shipped specs are read once and then copied; all functions may be called from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layline/spec/calibration.h"
#include "layline/spec/cluster.h"
#include "layline/spec/engine.h"
#include "layline/spec/gpu.h"
#include "layline/spec/model.h"

namespace layline::spec {

enum class SpecKind { kModel, kGpu, kCluster, kEngine, kCalibration };

struct ShippedSpec {
  SpecKind kind;
  std::string_view name;  // file name without .json
  std::string_view json;
};

// Generated at build time from specs/, sorted by kind and name.
const std::vector<ShippedSpec>& shipped_specs();

Model get_model(const std::string& name_or_path);  // also a Hugging Face config.json, or a folder with one
Gpu get_gpu(const std::string& name_or_path);
Cluster get_cluster(const std::string& name_or_path);  // a cluster file names its GPU or holds it inline
Engine get_engine(const std::string& name_or_path);
Calibration get_calibration(const std::string& name_or_path);

// The shipped calibration "<engine>-<the GPU's family>", else the "none" one (analytic defaults).
Calibration default_calibration(const Engine& engine, const Gpu& gpu);
// The one inside the cluster where that is for this engine.
Calibration default_calibration(const Engine& engine, const Cluster& cluster);

// The cluster of run records' `hardware` ("A100-80GB SXM") and `interconnect` columns: the one whose GPU has that alias
// and whose interconnect_aliases have the longest match in the text; without a match the GPU's own.
Cluster cluster_for_hardware(const std::string& hardware, const std::string& interconnect);

// Parse texts; `where` names them in errors. Strict: unknown and duplicate keys, wrong types, NaN, out-of-range
// numbers.
Model parse_model(std::string_view json, const std::string& where);  // Layline's own keys, or Hugging Face's
Gpu parse_gpu(std::string_view json, const std::string& where);
Cluster parse_cluster(std::string_view json, const std::string& where);
Engine parse_engine(std::string_view json, const std::string& where);
Calibration parse_calibration(std::string_view json, const std::string& where);

std::string to_json(const Calibration& calibration);  // what parse_calibration reads
std::string to_json(const Model& model);
std::string to_json(const Cluster& cluster);  // with the GPU inside: what parse_cluster reads

}  // namespace layline::spec
