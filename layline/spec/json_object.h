// Strict reading of JSON objects: every key is asked for, every error says file, JSON path, what was found and what is
// allowed. Private to this folder: it shows the JSON library.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace layline::spec {

// Parses one document: a byte order mark is skipped; duplicate keys, more than 32 levels and anything after the value are
// errors.
nlohmann::json parse_strict_json(std::string_view text, const std::string& where);

class JsonObject {
 public:
  // where: the file; path: "$" for the root.
  JsonObject(const nlohmann::json& value, std::string where, std::string path = "$");

  bool has(const std::string& key) const { return value_.contains(key); }

  // Each throws base::InputError when the key is missing, of another type, or out of range.
  int64_t whole(const std::string& key, int64_t lower, int64_t upper);
  double number(const std::string& key, double lower, double upper);
  bool flag(const std::string& key);
  std::string text(const std::string& key);
  std::vector<std::string> texts(const std::string& key);
  std::map<std::string, std::string> text_map(const std::string& key);
  std::map<std::string, double> number_map(const std::string& key);
  std::vector<int64_t> wholes(const std::string& key, int64_t lower, int64_t upper);
  std::vector<JsonObject> objects(const std::string& key);
  JsonObject object(const std::string& key);
  bool is_null(const std::string& key) const { return has(key) && value_.at(key).is_null(); }
  bool is_object(const std::string& key) const { return has(key) && value_.at(key).is_object(); }

  // One of `names`, as its index.
  template <typename Names>
  size_t choice(const std::string& key, const Names& names) {
    return choice_of(text(key), path_of(key), std::vector<std::string>(names.begin(), names.end()));
  }
  template <typename Names>
  std::vector<size_t> choices(const std::string& key, const Names& names) {
    std::vector<size_t> indices;
    for (const std::string& name : texts(key)) {
      indices.push_back(choice_of(name, path_of(key), std::vector<std::string>(names.begin(), names.end())));
    }
    return indices;
  }

  // Keys that may be there, for the nearest name in finish().
  void ask_all(const std::vector<std::string>& keys) { asked_.insert(keys.begin(), keys.end()); }

  // Throws when a key was never asked for, with the nearest one that was.
  void finish() const;

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  const nlohmann::json& get(const std::string& key);
  std::string path_of(const std::string& key) const { return path_ + "." + key; }
  size_t choice_of(const std::string& found, const std::string& path, const std::vector<std::string>& names) const;
  double checked_number(const nlohmann::json& value, const std::string& path, double lower, double upper) const;
  int64_t checked_whole(const nlohmann::json& value, const std::string& path, int64_t lower, int64_t upper) const;

  const nlohmann::json& value_;
  std::string where_, path_;
  std::set<std::string> asked_;
};

}  // namespace layline::spec
