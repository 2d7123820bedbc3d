// «€» 🐍
module.exports = {  función: n => {
    return (function größe(n) {
      return module.exports.inside(
        n); })(n);
  } };
