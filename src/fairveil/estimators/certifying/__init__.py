"""Certificates, private tables and monitors of any finished model, and fits that certify
themselves."""
